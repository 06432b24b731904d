//! Reads and writes PyTorch checkpoints and safetensors, without executing anything from the file. [`read`] and
//! [`write_pt`] are the entry points; [`inspect()`] says what Python would execute.
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod atomic;
mod checkpoint;
mod error;
mod inspect;
mod json;
mod legacy;
mod module;
mod pickle;
mod reference;
mod safetensors;
mod sniff;
mod value;
mod weights_file;
mod write;
mod zip;

use std::fs::{self, File};
use std::io::{Cursor, Seek as _};
use std::path::Path;

pub use atomic::Replacement;
pub use error::{Problem, WeightsError};
pub use inspect::{Format, Inspection, inspect};
pub use reference::Reference;
pub use safetensors::encode_safetensors;
pub use value::{DType, TensorData, Value};
pub use weights_file::WeightsFile;
pub use write::{encode, encode_modules, write_pt};

use sniff::{Kind, whole};

/// Reads a `.pt` file, in PyTorch's zip layout or in that before version 1.6, or a `.safetensors` file. The content
/// decides which it is, not the name.
///
/// # Errors
/// If the file cannot be read, is none of these, is damaged, references a class that is not
/// on the allow-list, or holds no model.
pub fn read(path: &Path) -> Result<WeightsFile, WeightsError> {
    read_inner(path).map_err(|problem| WeightsError::new(path, problem))
}

/// Reads the bytes of a `.pt` file, such as [`encode`] returns. `name` is the file in an error.
///
/// # Errors
/// As [`read`].
pub fn decode(bytes: &[u8], name: &Path) -> Result<WeightsFile, WeightsError> {
    zip::read(Cursor::new(bytes), bytes.len() as u64)
        .and_then(checkpoint::weights)
        .map_err(|problem| WeightsError::new(name, problem))
}

fn read_inner(path: &Path) -> Result<WeightsFile, Problem> {
    let opening = |source| Problem::Io { doing: "opened", source };
    // Checked before opening: opening a pipe would wait for a writer.
    let metadata = fs::metadata(path).map_err(opening)?;
    if !metadata.is_file() {
        return Err(Problem::NotAFile);
    }
    let mut file = File::open(path).map_err(opening)?;
    let reading = |source| Problem::Io { doing: "read", source };
    match sniff::kind(&mut file, metadata.len()).map_err(reading)? {
        Kind::Zip => {
            file.rewind().map_err(reading)?;
            checkpoint::weights(zip::read(file, metadata.len())?)
        }
        Kind::Legacy => checkpoint::weights(legacy::read(&whole(file).map_err(reading)?)?),
        Kind::Safetensors => safetensors::weights(&whole(file).map_err(reading)?),
        Kind::Other(problem) => Err(problem),
    }
}

//! Weights files: reading what YOLOv5, PyTorch and we ourselves have written, and writing
//! checkpoints that PyTorch can open. A `.pt` file is a program for Python's pickle machine;
//! here it is only ever read as data, by a machine of our own that knows a list of classes and
//! can call nothing. [`read`] goes by the content of a file and not by its name, and whatever
//! is wrong with the file is one [`WeightsError`].

mod atomic;
mod checkpoint;
mod error;
mod json;
mod pickle;
mod safetensors;
mod sniff;
mod value;
mod write;
mod zip;

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::Path;

use indexmap::IndexMap;

pub use error::{Problem, WeightsError};
pub use value::{DType, TensorData, Value};
pub use write::write_pt;

use sniff::Kind;

/// The tensors of a file under their `state_dict` names, and what the file says of its model.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightsFile {
    /// Tensors in the file's order. Of a checkpoint with both, `ema` is taken and not `model`,
    /// as YOLOv5 does.
    pub tensors: IndexMap<String, TensorData>,
    /// Class names; the index is the class.
    pub names: Option<Vec<String>>,
    /// The description of the model, as YOLOv5 keeps it in its checkpoints.
    pub yaml: Option<serde_json::Value>,
    /// Strides of the detection levels in pixels.
    pub stride: Option<Vec<f64>>,
    /// Everything that the file holds: epoch, optimizer and so on. It has copies of its own of
    /// the tensors. Of a `.safetensors` file, a dict of its metadata.
    pub root: Value,
}

/// Reads a `.pt` (PyTorch's zip layout) or `.safetensors` file, told apart by content.
///
/// # Errors
/// When the file cannot be read, is none of the two, is damaged, names a class that is not on
/// the list of those known to be harmless, or holds no model.
pub fn read(path: &Path) -> Result<WeightsFile, WeightsError> {
    read_inner(path).map_err(|problem| WeightsError::new(path, problem))
}

fn read_inner(path: &Path) -> Result<WeightsFile, Problem> {
    let opening = |source| Problem::Io { doing: "opened", source };
    // Before it is opened: a pipe would wait for a writer.
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
        Kind::Safetensors => {
            file.rewind().map_err(reading)?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(reading)?;
            safetensors::weights(&bytes)
        }
        Kind::Other(problem) => Err(problem),
    }
}

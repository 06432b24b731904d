//! Reads and writes PyTorch checkpoints, and reads safetensors, without executing anything from the
//! file. [`read`] and [`write_pt`] are the entry points.
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

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

/// The tensors of a file by their `state_dict` names, and what the file says about its model.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightsFile {
    /// The tensors in the file's order. If a checkpoint has both `ema` and `model`, these are the
    /// tensors of `ema`, as in YOLOv5.
    pub tensors: IndexMap<String, TensorData>,
    /// Class names, indexed by class.
    pub names: Option<Vec<String>>,
    /// The model configuration that YOLOv5 keeps in its checkpoints.
    pub yaml: Option<serde_json::Value>,
    /// Strides of the detection levels in pixels.
    pub stride: Option<Vec<f64>>,
    /// Everything in the file: epoch, optimizer and so on, with its own copies of the tensors.
    /// For a `.safetensors` file, a dict of its metadata.
    pub root: Value,
}

/// Reads a `.pt` file (in PyTorch's zip layout) or a `.safetensors` file. The content decides
/// which of the two it is, not the name.
///
/// # Errors
/// If the file cannot be read, is neither of the two, is damaged, references a class that is not
/// on the allow-list, or holds no model.
pub fn read(path: &Path) -> Result<WeightsFile, WeightsError> {
    read_inner(path).map_err(|problem| WeightsError::new(path, problem))
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
        Kind::Safetensors => {
            file.rewind().map_err(reading)?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(reading)?;
            safetensors::weights(&bytes)
        }
        Kind::Other(problem) => Err(problem),
    }
}

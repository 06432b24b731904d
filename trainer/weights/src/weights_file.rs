//! The content of a weights file.

use indexmap::IndexMap;

use crate::value::{TensorData, Value};

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

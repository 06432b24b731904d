//! The content of a weights file.

use indexmap::IndexMap;

use crate::module;
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

impl WeightsFile {
    /// Whether the entry `key` of the file is a pickled module, as in checkpoints of YOLOv5, and not a state dict.
    pub fn holds_module(&self, key: &str) -> bool {
        matches!(self.root.get(key), Some(Value::Object { .. }))
    }

    /// The tensors of the pickled module that is the entry `key`, by their `state_dict` names; `None` if there is no such
    /// module, or it is damaged.
    pub fn module(&self, key: &str) -> Option<IndexMap<String, TensorData>> {
        let module = self.root.get(key).filter(|_| self.holds_module(key))?;
        module::tensors(module).ok()
    }
}

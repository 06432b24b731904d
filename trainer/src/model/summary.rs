//! The size of a model as YOLOv5 prints it: layers, parameters, gradients, GFLOPs. Layers and
//! operations come from its description, parameters are counted on its tensors.

use std::fmt;

use super::detector::Model;
use crate::error::TrainError;

/// The size of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Modules that contain no other modules.
    pub layers: usize,
    /// Values of all parameters.
    pub parameters: usize,
    /// Values of the parameters that are not frozen.
    pub gradients: usize,
    /// 10⁹ operations for an image of 640×640 pixels; a multiply-add counts as two.
    pub gflops: f64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { layers, parameters, gradients, gflops } = self;
        write!(f, "{layers} layers, {parameters} parameters, {gradients} gradients, {gflops:.1} GFLOPs")
    }
}

impl Model {
    /// Counts layers, parameters and operations.
    ///
    /// # Errors
    /// Never, for a model that was built.
    pub fn summary(&self) -> Result<Summary, TrainError> {
        let described = if self.fused { self.spec.fused_summary()? } else { self.spec.summary()? };
        let count = |trained: bool| -> usize {
            let wanted = self.state.parameters().filter(|entry| !trained || entry.tensor.requires_grad());
            wanted.map(|entry| entry.tensor.numel()).sum()
        };
        Ok(Summary {
            layers: described.layers,
            parameters: count(false),
            gradients: count(true),
            gflops: described.gflops,
        })
    }
}

//! The size of a model in the numbers that YOLOv5 prints: layers, parameters, gradients, GFLOPs.
//! Layers and operations are those of its description; parameters are counted on the tensors.

use std::fmt;

use super::detector::Model;
use crate::error::TrainError;

/// What a model is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Modules that contain no other.
    pub layers: usize,
    /// Numbers that can be trained.
    pub parameters: usize,
    /// Those of them that are not frozen.
    pub gradients: usize,
    /// 10⁹ operations for one image of 640×640 pixels, two a multiply-add.
    pub gflops: f64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { layers, parameters, gradients, gflops } = self;
        write!(f, "{layers} layers, {parameters} parameters, {gradients} gradients, {gflops:.1} GFLOPs")
    }
}

impl Model {
    /// Layers, parameters and operations, as far as they can be learned.
    ///
    /// # Errors
    /// Never for a model that was built; its description has been measured then.
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

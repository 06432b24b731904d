//! The size of a model in the numbers that YOLOv5 prints: layers, parameters, gradients, GFLOPs. They come from
//! shapes alone, so asking costs nothing.

use std::fmt;

use super::block::{Meter, Shape};
use super::{Model, gather};

/// The side of the image for which operations are stated.
const GFLOPS_SIZE: f64 = 640.0;

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
    /// Counts layers, parameters and operations.
    pub fn summary(&self) -> Summary {
        // YOLOv5 profiles one image of the largest stride, then scales by the area.
        let side = self.strides().iter().copied().fold(32.0, f64::max);
        let image = Shape { c: self.spec.channels, h: side as usize, w: side as usize };
        let (mut meter, mut shapes) = (Meter::default(), Vec::with_capacity(self.layers.len()));
        for (index, layer) in self.layers.iter().enumerate() {
            // Sources were checked when the model was built: there is always something to read.
            let inputs = gather(&layer.from, index, &shapes, image).unwrap_or_default();
            shapes.extend(layer.trace(&inputs, &mut meter));
        }
        let count = |trained: bool| -> usize {
            let wanted = self.state.parameters().filter(|entry| !trained || entry.tensor.requires_grad());
            wanted.map(|entry| entry.tensor.numel()).sum()
        };
        Summary {
            layers: meter.leaves,
            parameters: count(false),
            gradients: count(true),
            gflops: 2.0 * meter.macs / 1e9 * (GFLOPS_SIZE / side).powi(2),
        }
    }
}

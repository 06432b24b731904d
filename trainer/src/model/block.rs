//! What every module is to the model: a function of one tensor, and a function of a shape. The second
//! finds strides and counts operations without touching a tensor, so that a model is ready, and its
//! summary known, before the first image.

use tch::Tensor;
use tch_distributed::ProcessGroup;
use yolo_plan::model::Activation;

use crate::error::TrainError;

/// How one pass treats batch normalisation.
pub(super) struct Pass<'a> {
    /// Use and record the statistics of the batch.
    pub(super) training: bool,
    /// Weight of the batch in the running statistics.
    pub(super) momentum: f64,
    /// Added to the variance.
    pub(super) eps: f64,
    /// The ranks whose batches are normalised together.
    pub(super) sync: Option<&'a ProcessGroup>,
}

/// Channels, height and width of one image's activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) c: usize,
    pub(super) h: usize,
    pub(super) w: usize,
}

impl Shape {
    pub(super) fn numel(self) -> usize {
        self.c * self.h * self.w
    }
}

/// What a walk over shapes has counted.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// Multiply-adds of convolutions and linear layers, and operations of normalisations.
    pub(super) macs: f64,
    /// Modules that have no modules inside.
    pub(super) leaves: usize,
    shared_activation: bool,
}

impl Meter {
    pub(super) fn leaf(&mut self) {
        self.leaves += 1;
    }

    /// The activation is one object that all convolutions share; "none" is an object each.
    pub(super) fn activation(&mut self, activation: Activation) {
        if activation == Activation::Identity {
            self.leaves += 1;
        } else if !self.shared_activation {
            self.shared_activation = true;
            self.leaves += 1;
        }
    }
}

/// A module with one input.
pub(super) trait Block {
    /// The output for `x` (B, C, H, W).
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TrainError>;

    /// The output's shape; counts on the way.
    fn trace(&self, shape: Shape, meter: &mut Meter) -> Shape;
}

/// Blocks one after the other.
pub(super) struct Sequential(pub(super) Vec<Box<dyn Block>>);

impl Block for Sequential {
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TrainError> {
        let mut x = x.shallow_clone();
        for block in &self.0 {
            x = block.forward(&x, pass)?;
        }
        Ok(x)
    }

    fn trace(&self, shape: Shape, meter: &mut Meter) -> Shape {
        self.0.iter().fold(shape, |shape, block| block.trace(shape, meter))
    }
}

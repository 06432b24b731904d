//! [`Block`], which most modules of a model implement: a function of one tensor. Output sizes and
//! costs are computed on the description instead (`yolo_plan::model`).

use tch::Tensor;
use tch_distributed::ProcessGroup;

use crate::error::TrainError;

/// How a forward pass treats batch normalization.
pub(super) struct Pass<'a> {
    /// Use and record the statistics of the batch.
    pub(super) training: bool,
    /// Weight of the batch in the running statistics.
    pub(super) momentum: f64,
    /// Added to the variance.
    pub(super) eps: f64,
    /// The ranks whose images are normalized together; `None` for this rank alone.
    pub(super) sync: Option<&'a ProcessGroup>,
}

/// A module with one input. A thread may run it.
pub(super) trait Block: Send {
    /// The output for `x` (B, C, H, W).
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TrainError>;
}

/// Blocks in sequence.
pub(super) struct Sequential(pub(super) Vec<Box<dyn Block>>);

impl Block for Sequential {
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TrainError> {
        let mut x = x.shallow_clone();
        for block in &self.0 {
            x = block.forward(&x, pass)?;
        }
        Ok(x)
    }
}

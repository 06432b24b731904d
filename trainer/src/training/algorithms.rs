//! Which algorithms cuDNN uses in training steps. With images of one size it pays to try all of them in the first step
//! and to keep the fastest. Validation has batches of many sizes, each of which would be a new trial.

use tch_train::set_cudnn_benchmark;
use yolo_plan::run::TrainTask;

use crate::error::TrainError;

/// While this lives, cuDNN tries its algorithms for each new size, if the steps of the run have one size. With
/// deterministic algorithms it never does, because the fastest may be another one in the next run.
#[derive(Debug)]
pub(crate) struct FastestAlgorithms(());

impl FastestAlgorithms {
    /// For the steps of this run.
    ///
    /// # Errors
    /// When libtorch refuses.
    pub(crate) fn of_steps(task: &TrainTask) -> Result<Self, TrainError> {
        set_cudnn_benchmark(has_one_size(task))?;
        Ok(Self(()))
    }
}

impl Drop for FastestAlgorithms {
    fn drop(&mut self) {
        // A refusal would have come from the call above.
        let _ = set_cudnn_benchmark(false);
    }
}

/// Whether all steps have images of the same size.
fn has_one_size(task: &TrainTask) -> bool {
    !task.rect && !task.multi_scale
}

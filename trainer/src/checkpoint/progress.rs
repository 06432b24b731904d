//! How far a run has come.

/// How far a run has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Epochs that are complete.
    pub epochs_done: usize,
    /// Batches of the next epoch that are done; 0 unless the run was interrupted.
    pub batches_done: usize,
    /// The sums of box, objectness and class loss over those batches, on rank 0.
    pub loss_sums: [f32; 3],
    /// The step, counted from the start of the run, of the last optimizer step; -1 before the first.
    pub last_optimizer_step: i64,
    /// The best fitness so far.
    pub best_fitness: f64,
    /// The epoch in which the fitness last rose, for early stopping.
    pub best_epoch: usize,
    /// The mAP50-95 of each class in the last validation, on which the images of an epoch depend with
    /// `--image-weights`. Empty without it, and before the first validation.
    pub average_precisions: Vec<f64>,
}

impl Progress {
    /// A run before its first step.
    pub const START: Self = Self {
        epochs_done: 0,
        batches_done: 0,
        loss_sums: [0.0; 3],
        last_optimizer_step: -1,
        best_fitness: 0.0,
        best_epoch: 0,
        average_precisions: Vec::new(),
    };
}

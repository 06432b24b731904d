//! How far a run has come.

use crate::training::LossSums;

/// How far a run has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Epochs that are complete.
    pub epochs_done: usize,
    /// Batches of the next epoch that are done; 0 unless the run was interrupted.
    pub batches_done: usize,
    /// The losses of those batches, on rank 0.
    pub losses: LossSums,
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
        losses: LossSums { sums: [0.0; 3], left_out: 0 },
        last_optimizer_step: -1,
        best_fitness: 0.0,
        best_epoch: 0,
        average_precisions: Vec::new(),
    };

    /// Counts in epochs of `batches`, if they had another number `before`, because the data set has changed. What is done of
    /// the epoch stays done, and as many batches as before wait for their optimizer step.
    pub fn count_by(&mut self, batches: usize, before: usize) {
        let next = |done: usize, batches: usize| (self.epochs_done * batches + done) as i64;
        let done = self.batches_done.min(batches);
        let waiting = next(self.batches_done, before) - self.last_optimizer_step;
        self.last_optimizer_step = next(done, batches) - waiting;
        if done < self.batches_done {
            // Their mean over the batches that count stays what it was.
            self.losses = self.losses.part(done as f64 / self.batches_done as f64);
        }
        self.batches_done = done;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After 3 epochs and 4 batches of 10, with the last optimizer step two batches ago.
    fn half() -> Progress {
        Progress {
            epochs_done: 3,
            batches_done: 4,
            losses: LossSums { sums: [8.0, 4.0, 2.0], left_out: 2 },
            last_optimizer_step: 32,
            ..Progress::START
        }
    }

    #[test]
    fn the_same_batches_change_nothing() {
        for progress in [half(), Progress::START] {
            let mut counted = progress.clone();
            counted.count_by(10, 10);
            assert_eq!(counted, progress);
        }
    }

    #[test]
    fn the_next_optimizer_step_comes_after_as_many_batches_as_before() {
        let mut progress = half();
        progress.count_by(6, 10);
        assert_eq!((progress.batches_done, progress.last_optimizer_step), (4, 3 * 6 + 4 - 2));
        assert_eq!(progress.losses, half().losses);
        progress.count_by(10, 6);
        assert_eq!(progress, half());
    }

    #[test]
    fn an_epoch_that_has_become_shorter_than_what_is_done_is_over() {
        let mut progress = half();
        progress.count_by(1, 10);
        assert_eq!((progress.batches_done, progress.last_optimizer_step), (1, 3 + 1 - 2));
        assert_eq!(progress.losses, LossSums { sums: [2.0, 1.0, 0.5], left_out: 1 });
    }
}

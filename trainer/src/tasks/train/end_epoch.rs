//! The end of an epoch: all ranks validate the averaged weights, rank 0 writes the results and the
//! checkpoints, and decides for all whether training continues.

use yolo_plan::event::{EpochSummary, Event};

use super::training::Training;
use crate::error::TrainError;
use crate::tasks::val::Validation;
use crate::training::LossSums;

/// What follows an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// The next epoch, if there is one.
    Continue,
    /// Training ends: the fitness has not risen for long enough.
    StopEarly,
    /// The user interrupted the validation. Resuming starts with it.
    Interrupt,
}

impl Decision {
    const ALL: [Self; 3] = [Self::Continue, Self::StopEarly, Self::Interrupt];
}

impl Training<'_> {
    /// Ends an epoch. Returns rank 0's decision on every rank.
    pub(super) fn end_epoch(
        &mut self,
        number: usize,
        train_losses: [f64; 3],
        seconds: f64,
    ) -> Result<Decision, TrainError> {
        let own = self.validate_and_save(number, train_losses, seconds)?;
        Ok(Decision::ALL[usize::from(self.context.broadcast(own as u8)?)])
    }

    /// Whether the epochs of a resumed run had already been ended by early stopping.
    pub(super) fn was_stopped_early(&self) -> bool {
        let done = self.progress.epochs_done;
        done > 0 && self.stopping.stops_after(done - 1)
    }

    /// Whether the user has asked to stop and there is another epoch. Every rank gets the same answer.
    pub(super) fn stops_before_next_epoch(&self) -> Result<bool, TrainError> {
        Ok(self.progress.epochs_done < self.task.epochs && self.context.any_asked_to_stop()?)
    }

    fn start_epoch(&mut self, number: usize) {
        self.progress.epochs_done = number;
        self.progress.batches_done = 0;
        self.progress.losses = LossSums::default();
    }

    /// Invariant: every rank has the same metrics, so the progress and the decision are the same too.
    fn validate_and_save(
        &mut self,
        number: usize,
        train_losses: [f64; 3],
        seconds: f64,
    ) -> Result<Decision, TrainError> {
        let last = number + 1 == self.task.epochs;
        let validation = if !self.task.noval || last || self.stopping.stops_after(number) {
            self.context.reporter.phase("validating");
            let Some(validation) = self.validate_average()? else { return Ok(Decision::Interrupt) };
            Some(validation)
        } else {
            None
        };
        if let Some(validation) = &validation {
            self.weigh_images(validation);
            self.keep_for_report(format!("epoch {}", number + 1), validation, Vec::new());
        }
        // As in YOLOv5, an epoch without validation has the fitness 0.
        let fitness = validation.as_ref().map_or(0.0, |validation| validation.metrics.fitness());
        let best = fitness >= self.progress.best_fitness;
        if best {
            self.progress.best_fitness = fitness;
        }
        self.stopping.add(number, fitness);
        self.progress.best_epoch = self.stopping.best_epoch();
        let stop = self.stopping.stops_after(number);
        if self.context.is_main() {
            self.report_epoch(number, train_losses, seconds, validation.as_ref(), best)?;
        }
        if let Some(patience) = self.task.patience.filter(|_| stop && self.context.is_main()) {
            self.context.reporter.note(format!(
                "stopping early: no epoch of the last {patience} was better than epoch {} (--patience)",
                self.stopping.best_epoch() + 1
            ));
        }
        self.start_epoch(number + 1);
        let saves = !self.task.evolve && (!self.task.nosave || last || stop);
        if self.context.is_main() && saves {
            self.context.reporter.phase("writing the checkpoint");
            self.save(number, best)?;
        }
        Ok(if stop { Decision::StopEarly } else { Decision::Continue })
    }

    /// Lets the images of the next epoch depend on this validation, with `--image-weights`.
    fn weigh_images(&mut self, validation: &Validation) {
        if !self.task.image_weights {
            return;
        }
        self.progress.average_precisions = validation.average_precisions(self.task.data.names.len());
        if let Some(loader) = &mut self.loader {
            loader.set_average_precisions(&self.progress.average_precisions);
        }
    }

    /// Appends the epoch to `results.csv` and reports it.
    fn report_epoch(
        &self,
        number: usize,
        train_losses: [f64; 3],
        seconds: f64,
        validation: Option<&Validation>,
        best: bool,
    ) -> Result<(), TrainError> {
        let summary = EpochSummary {
            epoch: number,
            epochs: self.task.epochs,
            train_losses,
            metrics: validation.map(|validation| validation.metrics),
            val_losses: validation.and_then(|validation| validation.losses),
            lr: self.learner.optimizer().learning_rates(),
            seconds,
            best,
        };
        if let Some(results) = &self.results {
            results.append(&summary)?;
        }
        self.events.epoch(&summary);
        self.context.reporter.send(&Event::Epoch(summary));
        Ok(())
    }
}

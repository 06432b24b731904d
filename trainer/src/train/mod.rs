//! Training as one rank does it (spec §6): everything is prepared in [`setup`], the epochs run in
//! [`epoch`], and [`finish`] leaves the files of a finished run. Rank 0 validates, writes and
//! speaks; the others follow its decisions.

mod epoch;
mod finish;
pub mod learner;
mod meter;
mod setup;
mod stopper;

use yolo_plan::RunPlan;
use yolo_plan::event::{EpochSummary, Event};
use yolo_plan::run::TrainTask;

use crate::error::TrainError;
use crate::rank::{Ending, Rank};
use setup::Training;

/// Trains as the plan says, from the start or from a checkpoint.
pub fn train(context: &Rank, plan: &RunPlan, task: &TrainTask) -> Result<Ending, TrainError> {
    let began = std::time::Instant::now();
    let mut training = Training::prepare(context, plan, task)?;
    let mut stopped_early = false;
    let mut epochs = training.progress.epochs_done;
    for number in training.progress.epochs_done..task.epochs {
        context.reporter.phase(&format!("training epoch {} of {}", number + 1, task.epochs));
        let epoch_began = std::time::Instant::now();
        let Some(train_losses) = training.run_epoch(number)? else {
            return training.interrupt();
        };
        epochs = number + 1;
        stopped_early = training.end_epoch(number, train_losses, epoch_began.elapsed().as_secs_f64())?;
        if stopped_early {
            break;
        }
    }
    if context.is_main() {
        training.finish(epochs, began.elapsed().as_secs_f64(), stopped_early)?;
    }
    Ok(Ending::Finished)
}

impl Training<'_> {
    /// Validates, writes the results and checkpoints of an epoch, and decides with all ranks
    /// whether it was the last: true when training stops early.
    fn end_epoch(&mut self, number: usize, train_losses: [f64; 3], seconds: f64) -> Result<bool, TrainError> {
        let lr = self.learner.optimizer().learning_rates();
        self.progress.epochs_done = number + 1;
        self.progress.batches_done = 0;
        let mut stop = false;
        if self.context.is_main() {
            let last = number + 1 == self.task.epochs;
            let outcome = if !self.task.noval || last || self.may_stop {
                self.context.reporter.phase("validating");
                Some(self.validate_average()?)
            } else {
                None
            };
            // An epoch that was not validated has the fitness 0, as in the original.
            let fitness = outcome.as_ref().map_or(0.0, |outcome| outcome.metrics.fitness());
            let best = fitness >= self.progress.best_fitness;
            if best {
                self.progress.best_fitness = fitness;
            }
            let verdict = self.stopper.judge(number, fitness);
            self.may_stop = verdict.may_stop_next;
            stop = verdict.stop;
            let summary = EpochSummary {
                epoch: number,
                epochs: self.task.epochs,
                train_losses,
                metrics: outcome.as_ref().map(|outcome| outcome.metrics),
                val_losses: outcome.as_ref().and_then(|outcome| outcome.losses),
                lr,
                seconds,
                best,
            };
            if let Some(results) = &self.results {
                results.append(&summary)?;
            }
            self.context.reporter.send(&Event::Epoch(summary));
            let final_epoch = last || stop;
            if !self.task.nosave || final_epoch {
                self.context.reporter.phase("writing the checkpoint");
                self.save(number, best)?;
            }
        }
        self.agree(stop)
    }
}

//! One epoch: for each batch warm-up, forward, loss, backward, and an optimizer step whenever the
//! nominal batch is full (spec §6).

use tch::Tensor;
use yolo_data::loader::Batch;
use yolo_plan::event::{Event, Step};

use super::meter::Meter;
use super::setup::Training;
use crate::error::TrainError;
use crate::rank::Ending;
use crate::report::{PICTURED, draw_targets};
use crate::val::images_tensor;

impl Training<'_> {
    /// Trains one epoch; the mean losses, or `None` when the run was asked to stop in its middle.
    pub(super) fn run_epoch(&mut self, number: usize) -> Result<Option<[f64; 3]>, TrainError> {
        let first = std::mem::take(&mut self.progress.batches_done);
        if first == 0 {
            // What the epoch before left of an unfinished nominal batch is dropped (spec §6).
            self.learner.optimizer().zero_grad()?;
        }
        let mut meter = Meter::new(std::mem::take(&mut self.rate));
        let mut loader = self.loader.take().ok_or_else(|| TrainError::new("the loader is in use"))?;
        let recycler = loader.recycler();
        let batches = loader.batches_per_epoch();
        let mut interrupted = false;
        for (index, batch) in (first..).zip(loader.epoch(number as u64, first)) {
            let batch = batch?;
            let items = self.step(number, index, batches, &batch)?;
            meter.add(&items, batch.items.len() * self.context.world)?;
            if self.context.is_main() && (meter.due() || index + 1 == batches) {
                self.report_step(number, index, batches, &batch, &meter)?;
            }
            if self.context.is_main() && self.task.plots && is_pictured(number, index) {
                let path = self.plan.run_dir.join(format!("train_batch{index}.jpg"));
                draw_targets(&batch, &self.task.data.names, &path)?;
            }
            recycler.give(batch.pixels);
            if self.context.all_asked_to_stop()? {
                self.progress.batches_done = index + 1;
                interrupted = true;
                break;
            }
        }
        self.loader = Some(loader);
        let losses = meter.losses()?;
        self.rate = meter.into_rate();
        self.rate.pause();
        Ok((!interrupted).then_some(losses))
    }

    /// One batch: the loss items (3) of this rank, on the device.
    fn step(
        &mut self,
        epoch: usize,
        index: usize,
        batches: usize,
        batch: &Batch,
    ) -> Result<Tensor, TrainError> {
        let number = index + batches * epoch;
        let accumulate = self.apply_schedule(epoch, number)?;
        let input = images_tensor(batch, self.context.device)?;
        let items = self.learner.backward(&input, &batch.targets)?;
        if number as i64 - self.progress.last_optimizer_step >= accumulate as i64 {
            // The norm would have to be waited for, and nothing here asks for it.
            let _norm = self.learner.update()?;
            self.progress.last_optimizer_step = number as i64;
        }
        Ok(items)
    }

    /// Sets learning rates and momentum of a step; how many batches fill an optimizer step.
    fn apply_schedule(&mut self, epoch: usize, number: usize) -> Result<usize, TrainError> {
        let settings = self.schedule.at(number, epoch);
        let optimizer = self.learner.optimizer_mut();
        optimizer.set_lr(0, settings.lr_bias)?;
        optimizer.set_lr(1, settings.lr_other)?;
        optimizer.set_lr(2, settings.lr_other)?;
        optimizer.set_momentum(settings.momentum)?;
        Ok(settings.accumulate)
    }

    fn report_step(
        &self,
        epoch: usize,
        index: usize,
        batches: usize,
        batch: &Batch,
        meter: &Meter,
    ) -> Result<(), TrainError> {
        let losses = meter.losses()?;
        if let Some(bad) = losses.iter().position(|loss| !loss.is_finite()) {
            let part = ["box", "objectness", "class"][bad];
            return Err(TrainError::new(format!(
                "the {part} loss became {} in epoch {}, batch {} of {batches}: training diverged",
                losses[bad],
                epoch + 1,
                index + 1
            ))
            .with_hint(
                "lower lr0 in the hyper-parameters (`--hyp`); last.pt holds the state before this epoch",
            ));
        }
        self.context.reporter.send(&Event::Step(Step {
            epoch,
            epochs: self.task.epochs,
            batch: index + 1,
            batches,
            losses: losses.map(|loss| loss as f32),
            images_per_second: meter.images_per_second(),
            image_size: batch.width.max(batch.height),
            memory: resident_bytes(),
            instances: batch.targets.len(),
        }));
        Ok(())
    }

    /// Saves the state in the middle of an epoch, so that the run can go on with the next batch.
    pub(super) fn interrupt(&mut self) -> Result<Ending, TrainError> {
        if self.context.is_main() {
            self.context.reporter.phase("saving the interrupted run");
            let path = self.save_as("last.pt")?;
            self.context.reporter.send(&Event::Interrupted { resume_from: Some(path) });
        }
        // No rank leaves before the file stands: the supervisor stops all when one ends.
        self.agree(true)?;
        Ok(Ending::Interrupted)
    }
}

/// Whether a batch is one of the first of a run, of which pictures are drawn.
fn is_pictured(epoch: usize, index: usize) -> bool {
    epoch == 0 && index < PICTURED
}

/// Resident memory of this process; 0 where the system does not tell.
fn resident_bytes() -> u64 {
    let Ok(text) = fs_err::read_to_string("/proc/self/statm") else { return 0 };
    let pages: u64 = text.split_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0);
    pages * 4096
}

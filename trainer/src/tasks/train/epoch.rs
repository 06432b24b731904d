//! One epoch: for each batch the learning rates, a forward and a backward pass, and an optimizer
//! step whenever the nominal batch is full (spec §6).

use tch::Tensor;
use yolo_data::loader::Batch;
use yolo_plan::event::{Event, Stage, Step};
use yolo_plan::run::TrainTask;

use super::training::Training;
use crate::error::TrainError;
use crate::model::images_tensor;
use crate::report::{PICTURED, draw_targets};
use crate::training::{Meter, multi_scale};

impl Training<'_> {
    /// Trains one epoch. Returns the mean losses, or `None` if the run was interrupted.
    pub(super) fn run_epoch(&mut self, number: usize) -> Result<Option<[f64; 3]>, TrainError> {
        let first = self.progress.batches_done;
        if first == 0 {
            // The rest of a nominal batch of the epoch before is dropped (spec §6).
            self.learner.optimizer().zero_grad()?;
        }
        let mut meter = Meter::new(std::mem::take(&mut self.rate), self.progress.loss_sums, first);
        let mut loader = self.loader.take().ok_or_else(|| TrainError::new("the loader is in use"))?;
        let recycler = loader.recycler();
        let (batches, sampler) = (loader.batches_per_epoch(), loader.sampler().clone());
        let mut interrupted = false;
        let doing = format!("training epoch {} of {}", number + 1, self.task.epochs);
        self.context.reporter.begin_steps(&doing, number, first, batches);
        for (index, batch) in (first..).zip(loader.epoch(number as u64, first)) {
            let batch = batch?;
            self.context.reporter.stage(Stage::Computing);
            let items = self.step(number, index, batches, &batch)?;
            meter.add(&items, sampler.global(index).len())?;
            self.progress.batches_done = index + 1;
            if self.context.is_main() {
                self.show(number, index, batches, &batch, &mut meter)?;
            }
            let images = sampler.local(index).len();
            recycler.give(batch.pixels);
            self.context.reporter.stage(Stage::Exchanging);
            interrupted = self.context.any_asked_to_stop()?;
            self.context.reporter.step_done(images);
            if interrupted {
                break;
            }
        }
        self.loader = Some(loader);
        self.progress.loss_sums = meter.sums()?;
        let losses = meter.losses()?;
        self.rate = meter.into_rate();
        self.rate.pause();
        Ok((!interrupted).then_some(losses))
    }

    /// Trains on one batch. Returns the loss items (3) of this rank, on the device.
    fn step(
        &mut self,
        epoch: usize,
        index: usize,
        batches: usize,
        batch: &Batch,
    ) -> Result<Tensor, TrainError> {
        let number = index + batches * epoch;
        let settings = self.schedule.at(number, epoch);
        let mut input = images_tensor(batch, self.context.device)?;
        if let Some(side) = self.longer_side(epoch, index) {
            input = multi_scale::resized(input, side, self.learner.model().largest_stride())?;
        }
        let last = &mut self.progress.last_optimizer_step;
        self.learner.step(&input, &batch.targets, &settings, number as i64, last)
    }

    /// The longer side in pixels to which a batch is resized, with `--multi-scale`.
    fn longer_side(&self, epoch: usize, index: usize) -> Option<usize> {
        let stride = self.learner.model().largest_stride();
        let TrainTask { seed, image_size, multi_scale, .. } = *self.task;
        multi_scale.then(|| multi_scale::side((seed, epoch, index), image_size, stride))
    }

    /// Reports a step if it is time to, and draws the first batches of the run.
    fn show(
        &self,
        epoch: usize,
        index: usize,
        batches: usize,
        batch: &Batch,
        meter: &mut Meter,
    ) -> Result<(), TrainError> {
        if meter.due() || index + 1 == batches {
            let losses = meter.losses()?;
            check_finite(losses, epoch, index, batches)?;
            self.context.reporter.send(&Event::Step(Step {
                epoch,
                epochs: self.task.epochs,
                batch: index + 1,
                batches,
                losses: losses.map(|loss| loss as f32),
                images_per_second: meter.images_per_second(),
                image_size: self.longer_side(epoch, index).unwrap_or(batch.width.max(batch.height)),
                memory: resident_bytes(),
                instances: batch.targets.len(),
            }));
        }
        if self.task.plots && epoch == 0 && index < PICTURED {
            let path = self.plan.run_dir.join(format!("train_batch{index}.jpg"));
            draw_targets(batch, &self.task.data.names, &path)?;
        }
        Ok(())
    }
}

/// Fails if a mean loss is not finite.
fn check_finite(losses: [f64; 3], epoch: usize, index: usize, batches: usize) -> Result<(), TrainError> {
    let Some(bad) = losses.iter().position(|loss| !loss.is_finite()) else { return Ok(()) };
    let part = ["box", "objectness", "class"][bad];
    Err(TrainError::new(format!(
        "the {part} loss became {} in epoch {}, batch {} of {batches}: training diverged",
        losses[bad],
        epoch + 1,
        index + 1
    ))
    .with_hint("lower lr0 in the hyperparameters (`--hyp`); last.pt holds the state before this epoch"))
}

/// Resident memory of this process; 0 where the system does not report it.
fn resident_bytes() -> u64 {
    #[cfg(target_os = "linux")]
    {
        let text = fs_err::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages: u64 = text.split_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0);
        pages * rustix::param::page_size() as u64
    }
    #[cfg(not(target_os = "linux"))]
    0
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_that_of_a_process() {
        let megabytes = resident_bytes() >> 20;
        assert!((1..1 << 20).contains(&megabytes), "{megabytes} MiB");
    }
}

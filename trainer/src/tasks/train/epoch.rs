//! One epoch: for each batch the learning rates, a forward and a backward pass, and an optimizer
//! step whenever the nominal batch is full (spec §6).

use tch::{Device, Kind, Tensor};
use yolo_data::loader::Batch;
use yolo_plan::event::{Event, Stage, Step};
use yolo_plan::precision::Precision;
use yolo_plan::run::TrainTask;

use super::training::Training;
use crate::error::TrainError;
use crate::model::{Ahead, copied_ahead, copied_in_turn};
use crate::report::{PICTURED, draw_targets};
use crate::training::{Diverged, EpochLosses, FastestAlgorithms, Meter, multi_scale};

impl Training<'_> {
    /// Trains one epoch. Returns the mean losses, or `None` if the run was interrupted.
    pub(super) fn run_epoch(&mut self, number: usize) -> Result<Option<[f64; 3]>, TrainError> {
        let first = self.progress.batches_done;
        if first == 0 {
            // The rest of a nominal batch of the epoch before is dropped (spec §6).
            self.learner.optimizer().zero_grad()?;
        }
        let scaled = self.learner.precision() == Precision::Fp16;
        let losses = EpochLosses::new(self.progress.losses, first, scaled);
        let mut meter = Meter::new(std::mem::take(&mut self.rate), losses);
        let mut loader = self.loader.take().ok_or_else(|| TrainError::new("the loader is in use"))?;
        let recycler = loader.recycler();
        let (batches, sampler) = (loader.batches_per_epoch(), loader.sampler().clone());
        let _fastest = FastestAlgorithms::of_steps(self.task)?;
        let mut waiting = None;
        let doing = format!("training epoch {} of {}", number + 1, self.task.epochs);
        self.context.reporter.begin_steps(&doing, number, first, batches);
        let (halt, has_threads) = (loader.halt(), loader.has_threads());
        let loaded = loader.epoch(number as u64, first);
        let device = self.context.device;
        let steps = |ahead: &mut Ahead<'_>| {
            for index in first.. {
                let computing = &mut || self.context.reporter.stage(Stage::Computing);
                let Some((batch, images)) = ahead.next(computing)? else { break };
                let items = self.step((number, index, batches), images, &batch)?;
                self.context.warn_of_slow_copies();
                meter.add(&items, sampler.global(index).len())?;
                self.progress.batches_done = index + 1;
                if self.context.is_main() {
                    self.show((number, index, batches), &batch, &mut meter, &mut waiting)?;
                }
                let images = sampler.local(index).len();
                recycler.give(batch.pixels);
                self.context.reporter.stage(Stage::Exchanging);
                let interrupted = self.context.any_asked_to_stop()?;
                self.context.reporter.step_done(images);
                if interrupted {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        // Without threads of the loader, the user wants no thread that makes batches.
        let interrupted = match has_threads {
            true => copied_ahead(device, &halt, loaded, steps),
            false => copied_in_turn(device, loaded, steps),
        }?;
        // The report of the run would otherwise lack what was done since the last heartbeat.
        self.context.reporter.send(&Event::Alive { progress: self.context.reporter.progress() });
        loader.take_warnings().into_iter().for_each(|message| self.context.reporter.warning(message));
        self.loader = Some(loader);
        let losses = meter.losses.take_all()?;
        self.progress.losses = meter.losses.sums();
        if self.context.is_main() {
            // Also before an interrupted run is saved: it must not replace a checkpoint that can be continued.
            self.check_health(number, batches, &meter.losses, interrupted)?;
        }
        self.rate = meter.into_rate();
        self.rate.pause();
        Ok((!interrupted).then_some(losses))
    }

    /// Trains on one batch, whose images are on the device. Returns the loss items (3) of this rank, which are there.
    fn step(
        &mut self,
        (epoch, index, batches): (usize, usize, usize),
        images: Tensor,
        batch: &Batch,
    ) -> Result<Tensor, TrainError> {
        let number = index + batches * epoch;
        let settings = self.schedule.at(number, epoch);
        let mut input = images;
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

    /// Reports a step if it is time to, and draws the first batches of the run. A GPU is some steps behind, so a step
    /// is reported when its losses have arrived; waiting for them would leave the GPU without work.
    fn show(
        &self,
        (epoch, index, batches): (usize, usize, usize),
        batch: &Batch,
        meter: &mut Meter,
        waiting: &mut Option<Step>,
    ) -> Result<(), TrainError> {
        let last = index + 1 == batches;
        if last || waiting.is_none() && meter.due() {
            let step = Step {
                epoch,
                epochs: self.task.epochs,
                batch: index + 1,
                batches,
                losses: [f32::NAN; 3],
                images_per_second: meter.images_per_second(),
                image_size: self.longer_side(epoch, index).unwrap_or(batch.width.max(batch.height)),
                memory: self.memory()?,
                instances: batch.targets.len(),
            };
            meter.losses.begin_reading()?;
            *waiting = Some(step);
        }
        if last || meter.losses.have_arrived()? {
            waiting.take().map_or(Ok(()), |step| self.report_step(meter, step))?;
        }
        if self.task.plots && epoch == 0 && index < PICTURED {
            let path = self.plan.run_dir.join(format!("train_batch{index}.jpg"));
            draw_targets(batch, &self.task.data.names, &path)?;
            self.events.picture(&path, epoch);
        }
        Ok(())
    }
}

impl Training<'_> {
    /// Reports a step with the losses that were being read.
    fn report_step(&self, meter: &mut Meter, step: Step) -> Result<(), TrainError> {
        let losses = meter.losses.take()?;
        if let Some(why) = meter.losses.diverged() {
            return Err(self.diverged(&loss_not_finite(why, step.epoch, step.batches)));
        }
        let losses = losses.map(|loss| loss as f32);
        self.context.reporter.send(&Event::Step(Step { losses, ..step }));
        Ok(())
    }

    /// Fails if training cannot get better any more. At the end of an epoch, says how many losses did not count.
    fn check_health(
        &self,
        epoch: usize,
        batches: usize,
        losses: &EpochLosses,
        interrupted: bool,
    ) -> Result<(), TrainError> {
        if let Some(why) = losses.diverged() {
            return Err(self.diverged(&loss_not_finite(why, epoch, batches)));
        }
        for buffer in self.learner.model().buffers().iter().filter(|buffer| buffer.kind() == Kind::Float) {
            if buffer.f_isfinite()?.f_all()?.f_int64_value(&[])? == 0 {
                let what = "a mean or variance of batch normalization is not finite in epoch";
                return Err(self.diverged(&format!("{what} {}", epoch + 1)));
            }
        }
        let left_out = losses.sums().left_out;
        if left_out == batches {
            return Err(self.diverged(&format!("no loss of epoch {} was finite", epoch + 1)));
        }
        if left_out > 0 && !interrupted {
            self.context.reporter.warning(left_out_of(left_out, epoch, batches));
        }
        Ok(())
    }

    fn diverged(&self, what: &str) -> TrainError {
        // In the first epoch, the file may be of another run, with `--exist-ok`.
        let saved = self.progress.epochs_done > 0 && self.weights_file("last.pt").is_file();
        TrainError::new(format!("{what}: training diverged"))
            .with_hint(against_divergence(self.learner.precision(), saved))
    }

    /// The memory in bytes of the GPUs of this rank that libtorch has reserved; on the CPU, that of this process.
    fn memory(&self) -> Result<u64, TrainError> {
        let all = &self.context.devices.all;
        let mut bytes = 0;
        for (index, device) in all.iter().enumerate() {
            // The replicas of `--parallel dp` may share a device.
            if !all[..index].contains(device) {
                bytes += match device {
                    Device::Cuda(number) => tch_train::reserved_memory(*number)?,
                    _ => resident_bytes(),
                };
            }
        }
        Ok(bytes)
    }
}

fn loss_not_finite(why: Diverged, epoch: usize, batches: usize) -> String {
    let Diverged { part, value, batch, in_a_row } = why;
    let place = format!("batch {batch} of {batches} of epoch {}", epoch + 1);
    match in_a_row {
        1 => format!("the {part} loss was {value} in {place}"),
        _ => {
            format!("the loss was not finite in {in_a_row} batches in a row, up to {place} ({part}: {value})")
        }
    }
}

fn left_out_of(left_out: usize, epoch: usize, batches: usize) -> String {
    format!(
        "the loss was not finite in {left_out} of {batches} batches of epoch {}, which do not count in its mean",
        epoch + 1
    )
}

/// What to do; `saved` says whether there is a `last.pt`.
fn against_divergence(precision: Precision, saved: bool) -> String {
    let precision = match precision {
        Precision::Fp16 => ", or use --precision bf16 or fp32",
        Precision::Fp32 | Precision::Bf16 => "",
    };
    let saved = if saved { "; last.pt holds an earlier state" } else { "" };
    format!("lower lr0 in the hyperparameters (`--hyp`){precision}{saved}")
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
    fn divergence_is_explained() {
        let once = Diverged { part: "box", value: f32::INFINITY, batch: 7, in_a_row: 1 };
        assert_eq!(loss_not_finite(once, 1, 50), "the box loss was inf in batch 7 of 50 of epoch 2");
        let often = Diverged { part: "class", value: f32::NAN, batch: 20, in_a_row: 20 };
        assert_eq!(
            loss_not_finite(often, 0, 50),
            "the loss was not finite in 20 batches in a row, up to batch 20 of 50 of epoch 1 (class: NaN)"
        );
        assert_eq!(
            left_out_of(1, 2, 50),
            "the loss was not finite in 1 of 50 batches of epoch 3, which do not count in its mean"
        );
        let hint = "lower lr0 in the hyperparameters (`--hyp`)";
        assert_eq!(against_divergence(Precision::Fp32, false), hint);
        let for_fp16 = ", or use --precision bf16 or fp32; last.pt holds an earlier state";
        assert_eq!(against_divergence(Precision::Fp16, true), [hint, for_fp16].concat());
    }

    #[test]
    fn resident_memory_is_that_of_a_process() {
        let megabytes = resident_bytes() >> 20;
        assert!((1..1 << 20).contains(&megabytes), "{megabytes} MiB");
    }
}

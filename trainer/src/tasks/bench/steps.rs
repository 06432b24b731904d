//! The speed of training steps, and the shares of their phases. A step is that of training, with the
//! learning rate 0: the weights stay the same, so that a long measurement neither trains nor diverges.

use std::time::{Duration, Instant};

use tch::{Device, Tensor};
use tch_train::host_waits;
use yolo_data::loader::Recycler;
use yolo_plan::bench_report::{Measurement, Rate, Source, StepPhases};
use yolo_plan::run::TrainTask;
use yolo_plan::schedule::{StepSettings, accumulate};

use super::numbers::{of_first, sum};
use super::stopwatch::Stopwatch;
use super::stream::Stream;
use crate::error::TrainError;
use crate::learner::Learner;
use crate::model::{Ahead, MOST_AHEAD, copied_ahead, copied_in_turn, images_tensor};
use crate::rank::context::Context;
use crate::synchronize::synchronize;
use crate::training::{self, FastestAlgorithms};

/// Steps before a measurement, in which libraries initialize and memory is allocated.
const WARM_UP: usize = 3;
/// Batches that the loader has made before the first step, at most. On a GPU, so many steps come before a measurement, so that
/// fewer of them are counted; a loader that is slower than the steps has made some more meanwhile.
const MADE_BEFORE: usize = 4;
/// The fewest steps whose phases are measured.
const PHASE_STEPS: usize = 3;
/// The phases are measured for this part of the time of the measurement.
const PHASE_PART: u32 = 4;

/// Training steps on one device.
pub(super) struct Steps {
    device: Device,
    learner: Learner,
    settings: StepSettings,
    /// The number of the next step, and that of the last one that updated the weights.
    number: i64,
    last_update: i64,
    time: Duration,
    _fastest: FastestAlgorithms,
}

/// What is measured of steps: their speed, and [`Measurement::Training`]'s other numbers.
struct Measured {
    rate: Rate,
    phases: StepPhases,
    host_waits: Option<f64>,
    launch_share: Option<f64>,
}

impl Measured {
    fn of(self, source: Source, workers: Option<usize>) -> Measurement {
        let Self { rate, phases, host_waits, launch_share } = self;
        Measurement::Training { source, workers, rate, phases, host_waits, launch_share }
    }
}

/// Where the batches of steps come from.
enum Feed<'a, 'b> {
    Files(&'a mut Ahead<'b>, Recycler),
    OneBatch(Input),
}

/// A batch on the device.
struct Input {
    images: Tensor,
    targets: Vec<[f32; 6]>,
}

impl Steps {
    /// Steps of `learner`, to be measured for `time`.
    ///
    /// # Errors
    /// When the device cannot be used.
    pub(super) fn new(
        context: &Context,
        task: &TrainTask,
        learner: Learner,
        time: Duration,
    ) -> Result<Self, TrainError> {
        let settings = StepSettings {
            accumulate: accumulate(task.nominal_batch, task.batch),
            lr_bias: 0.0,
            lr_other: 0.0,
            momentum: task.hyp.momentum,
        };
        let fastest = FastestAlgorithms::of_steps(task)?;
        let device = context.device;
        let (number, last_update) = (0, 0);
        Ok(Self { device, learner, settings, number, last_update, time, _fastest: fastest })
    }

    /// Measures steps on batches of the loader, which has this many threads.
    pub(super) fn on_files(
        &mut self,
        stream: &mut Stream,
        workers: usize,
    ) -> Result<Measurement, TrainError> {
        let (rate, host_waits) = self.with_files(stream, |steps, feed| steps.rate(feed))?;
        // Each phase is timed alone, that of the copy too. The loader was halted and makes its first batch anew.
        let recycler = stream.recycler();
        recycler.give(stream.batch()?.pixels);
        let phases = copied_in_turn(self.device, std::iter::repeat_with(|| stream.batch()), |ahead| {
            self.phases(&mut Feed::Files(ahead, recycler))
        })?;
        let launch_share = None;
        Ok(Measured { rate, phases, host_waits, launch_share }.of(Source::Files, Some(workers)))
    }

    /// Measures steps on one batch of this many images, which stays on the device while the loader rests.
    pub(super) fn on_one_batch(
        &mut self,
        stream: &mut Stream,
        images: usize,
    ) -> Result<Measurement, TrainError> {
        let batch = stream.batch_of(images)?;
        stream.pause();
        let images = images_tensor(&batch, self.device)?;
        let mut feed = Feed::OneBatch(Input { images, targets: batch.targets });
        let (rate, host_waits) = self.rate(&mut feed)?;
        let phases = self.phases(&mut feed)?;
        // From files, the CPU also waits for the loader.
        let launch_share = match self.device.is_cuda() {
            true => Some(self.launch_share(&mut feed, &mut training::Meter::default())?),
            false => None,
        };
        Ok(Measured { rate, phases, host_waits, launch_share }.of(Source::Synthetic, None))
    }

    /// Makes some steps on a batch that is on the device, each of which updates the weights, and waits for them.
    pub(super) fn warm_up_on(&mut self, images: Tensor, targets: Vec<[f32; 6]>) -> Result<(), TrainError> {
        let steady = self.settings;
        self.settings.accumulate = 1;
        let mut meter = training::Meter::default();
        let mut feed = Feed::OneBatch(Input { images, targets });
        for _ in 0..WARM_UP {
            self.step(&mut feed, &mut meter)?;
        }
        self.settings = steady;
        synchronize(self.device);
        Ok(())
    }

    /// Measures steps of all ranks on batches of their loaders, in several rounds.
    pub(super) fn on_files_together(
        &mut self,
        context: &Context,
        stream: &mut Stream,
        rounds: usize,
    ) -> Result<Vec<Rate>, TrainError> {
        self.with_files(stream, |steps, feed| steps.rounds(context, feed, rounds))
    }

    /// Calls `work` with the batches of a loader, which are copied ahead as training does.
    fn with_files<T>(
        &mut self,
        stream: &mut Stream,
        work: impl FnOnce(&mut Self, &mut Feed<'_, '_>) -> Result<T, TrainError>,
    ) -> Result<T, TrainError> {
        let recycler = stream.recycler();
        let (device, halt, has_threads) = (self.device, stream.halt(), stream.has_threads());
        let batches = std::iter::repeat_with(|| stream.batch());
        let work = |ahead: &mut Ahead<'_>| work(self, &mut Feed::Files(ahead, recycler));
        // As training does.
        match has_threads {
            true => copied_ahead(device, &halt, batches, work),
            false => copied_in_turn(device, batches, work),
        }
    }

    /// As [`Self::on_files_together`], on one batch of this many images on each device.
    pub(super) fn on_one_batch_together(
        &mut self,
        context: &Context,
        stream: &mut Stream,
        images: usize,
        rounds: usize,
    ) -> Result<Vec<Rate>, TrainError> {
        let batch = stream.batch_of(images)?;
        stream.pause();
        let images = images_tensor(&batch, self.device)?;
        let mut feed = Feed::OneBatch(Input { images, targets: batch.targets });
        self.rounds(context, &mut feed, rounds)
    }

    /// All ranks make the same steps, because they exchange gradients. A round has whole nominal batches,
    /// so that each has its share of the optimizer's steps and of the exchanges.
    fn rounds(
        &mut self,
        context: &Context,
        feed: &mut Feed<'_, '_>,
        rounds: usize,
    ) -> Result<Vec<Rate>, TrainError> {
        let mut meter = training::Meter::default();
        let step = self.warm_up_together(context, feed, &mut meter)?;
        let time = self.time.as_secs_f64() / rounds as f64;
        let steps = steps_of_round(time, step, self.settings.accumulate);
        let steps = of_first(context, steps)?;
        let mut rates = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            context.barrier()?;
            let began = Instant::now();
            let mut images = 0;
            for _ in 0..steps {
                images += self.step(feed, &mut meter)?;
                // Training asks this after each step.
                if context.any_asked_to_stop()? {
                    return Err(TrainError::new("the benchmark was asked to stop"));
                }
            }
            synchronize(self.device);
            // Ends when the slowest rank does.
            let images = sum(context, images)?;
            rates.push(Rate::since(began, images));
        }
        Ok(rates)
    }

    /// Makes some steps, or one if it takes longer than the measurement. Returns the seconds of the last.
    fn warm_up_together(
        &mut self,
        context: &Context,
        feed: &mut Feed<'_, '_>,
        meter: &mut training::Meter,
    ) -> Result<f64, TrainError> {
        let steady = self.settings;
        self.settings.accumulate = 1;
        let mut seconds = 0.0;
        for _ in 0..WARM_UP {
            let began = Instant::now();
            self.step(feed, meter)?;
            synchronize(self.device);
            seconds = began.elapsed().as_secs_f64();
            if context.broadcast(u8::from(seconds > self.time.as_secs_f64()))? > 0 {
                break;
            }
        }
        self.settings = steady;
        Ok(seconds)
    }

    /// The rate of steps after a warm-up, and on a GPU how often each waited for it.
    fn rate(&mut self, feed: &mut Feed<'_, '_>) -> Result<(Rate, Option<f64>), TrainError> {
        let steady = self.settings;
        // Each step of the warm-up updates the weights, so that the optimizer allocates its memory.
        self.settings.accumulate = 1;
        let mut meter = training::Meter::default();
        let is_ahead = matches!(feed, Feed::Files(..)) && self.device.is_cuda();
        let ready = if is_ahead { MADE_BEFORE + MOST_AHEAD } else { 0 };
        for step in 0..WARM_UP.max(ready) {
            if step == WARM_UP {
                self.settings = steady;
            }
            self.step(feed, &mut meter)?;
        }
        self.settings = steady;
        synchronize(self.device);
        let (first, waits_before) = (self.number, host_waits()?);
        let began = Instant::now();
        let mut images = 0;
        while began.elapsed() < self.time {
            images += self.step(feed, &mut meter)?;
        }
        let (steps, waits) = (self.number - first, host_waits()? - waits_before);
        synchronize(self.device);
        let rate = Rate::since(began, images);
        Ok((rate, self.device.is_cuda().then(|| waits as f64 / steps.max(1) as f64)))
    }

    /// One step as training makes it, with its running mean of the losses. Returns the images.
    fn step(&mut self, feed: &mut Feed<'_, '_>, meter: &mut training::Meter) -> Result<usize, TrainError> {
        let Input { images, targets } = feed.next(&mut || ())?;
        self.number += 1;
        let items =
            self.learner.step(&images, &targets, &self.settings, self.number, &mut self.last_update)?;
        let count = images.size()[0] as usize;
        meter.add(&items, count)?;
        // Training reads the losses this often.
        if !meter.losses.is_reading() && meter.due() {
            meter.losses.begin_reading()?;
        }
        if meter.losses.is_reading() && meter.losses.have_arrived()? {
            meter.losses.take()?;
        }
        Ok(count)
    }

    /// The part of the time of steps in which the CPU launches them. Each begins on an idle device.
    fn launch_share(
        &mut self,
        feed: &mut Feed<'_, '_>,
        meter: &mut training::Meter,
    ) -> Result<f64, TrainError> {
        let (mut launching, mut whole) = (0.0, 0.0);
        let began = Instant::now();
        let mut steps = 0;
        while steps < PHASE_STEPS || began.elapsed() < self.time / PHASE_PART {
            synchronize(self.device);
            let step = Instant::now();
            self.step(feed, meter)?;
            launching += step.elapsed().as_secs_f64();
            synchronize(self.device);
            whole += step.elapsed().as_secs_f64();
            steps += 1;
        }
        Ok(launching / whole)
    }

    /// The shares of the phases of a step. Every phase ends with a wait for the device, so the steps
    /// are slower than those of [`Self::rate`].
    fn phases(&mut self, feed: &mut Feed<'_, '_>) -> Result<StepPhases, TrainError> {
        let mut sums = StepPhases::default();
        let mut watch = Stopwatch::start(self.device);
        let began = Instant::now();
        let mut steps = 0;
        while steps < PHASE_STEPS || began.elapsed() < self.time / PHASE_PART {
            let Input { images, targets } = feed.next(&mut || sums.wait += watch.lap())?;
            sums.copy += watch.lap();
            let heads = self.learner.forward(&images)?;
            sums.forward += watch.lap();
            let loss = self.learner.loss_of(&heads, &targets)?;
            drop(heads);
            sums.loss += watch.lap();
            self.learner.add_gradients(&loss)?;
            drop(loss);
            sums.backward += watch.lap();
            // Here every step updates the weights, in a run only one of several.
            let _norm = self.learner.update()?;
            sums.optimizer += watch.lap() / self.settings.accumulate as f64;
            steps += 1;
        }
        Ok(sums.shares())
    }
}

/// How many steps of `step` seconds a round of `time` seconds has: whole nominal batches, at least one.
fn steps_of_round(time: f64, step: f64, accumulate: usize) -> usize {
    // A step that took no time would otherwise have no limit.
    const MOST: f64 = 1e6;
    let fit = (time / step).min(MOST) as usize;
    fit.div_ceil(accumulate).max(1) * accumulate
}

impl Feed<'_, '_> {
    /// The next batch on the device. `taken` is called when it is there, before the device may use it.
    fn next(&mut self, taken: &mut dyn FnMut()) -> Result<Input, TrainError> {
        match self {
            Self::Files(ahead, recycler) => {
                let (batch, images) =
                    ahead.next(taken)?.ok_or_else(|| TrainError::new("the loader has ended"))?;
                recycler.give(batch.pixels);
                Ok(Input { images, targets: batch.targets })
            }
            Self::OneBatch(Input { images, targets }) => {
                Ok(Input { images: images.shallow_clone(), targets: targets.clone() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_has_whole_nominal_batches() {
        assert_eq!(steps_of_round(1.6, 0.1, 1), 16);
        assert_eq!(steps_of_round(1.6, 0.1, 5), 20);
        assert_eq!(steps_of_round(1.6, 50.0, 1), 1);
        assert_eq!(steps_of_round(1.6, 50.0, 16), 16);
        assert_eq!(steps_of_round(1.6, 0.0, 1), 1_000_000);
    }
}

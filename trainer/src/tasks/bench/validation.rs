//! The speed of validation as `yolo val` does it, over the validation split as often as the time
//! allows, and the shares of its phases.

use std::time::{Duration, Instant};

use yolo_plan::bench_report::{Measurement, Rate, ValPhases};
use yolo_plan::run::{BenchTask, TrainTask};

use super::numbers::sum;
use super::stopwatch::Stopwatch;
use crate::detection::ImageResult;
use crate::error::TrainError;
use crate::model::Model;
use crate::rank::context::Context;
use crate::tasks::val::{Observer, Split, Stage, ValidateOptions, validate};

/// The phases are measured for this part of the time of the measurement.
const PHASE_PART: u32 = 4;

/// Validates `model`, which is fused, for this long.
pub(super) fn measure(
    context: &Context,
    task: &TrainTask,
    time: Duration,
    model: &Model,
    split: &mut Split,
) -> Result<Measurement, TrainError> {
    let names = &task.data.names;
    let options = ValidateOptions::standard(task.single_cls, context.threads);
    let mut pass = |follower: &mut Follower, options: &ValidateOptions| {
        validate(std::slice::from_ref(model), split, names, options, None, follower).map(|_| follower.images)
    };
    context.reporter.phase("loading validation images for the first time");
    pass(&mut Follower::until(Instant::now() + time), &options)?;

    context.reporter.phase("measuring validation");
    let began = Instant::now();
    let mut images = 0;
    while began.elapsed() < time {
        images += pass(&mut Follower::until(began + time), &options)?;
    }
    let rate = Rate::since(began, images);

    let timed = Some((Stopwatch::start(context.device), ValPhases::default()));
    let mut follower = Follower { timed, ..Follower::until(Instant::now() + time / PHASE_PART) };
    // Without overlap, so that each phase is timed alone.
    pass(&mut follower, &ValidateOptions { overlap: false, ..options.clone() })?;
    let phases = follower.timed.map(|(_, sums)| sums.shares()).unwrap_or_default();
    Ok(Measurement::Validation { rate, phases })
}

/// Validates `model`, which is fused, on all ranks: over the whole split as often as the time allows, but
/// not more often than there are rounds. A pass that takes longer than the time is cut.
pub(super) fn measure_together(
    context: &Context,
    task: &BenchTask,
    time: Duration,
    model: &Model,
    split: &mut Split,
) -> Result<Vec<Rate>, TrainError> {
    let names = &task.training.data.names;
    let options = ValidateOptions::standard(task.training.single_cls, context.threads);
    let mut pass = || {
        context.barrier()?;
        let began = Instant::now();
        let mut follower = Follower::until(began + time);
        validate(std::slice::from_ref(model), split, names, &options, None, &mut follower)?;
        // Ends when the slowest rank does.
        let images = sum(context, follower.images)?;
        Ok::<_, TrainError>(Rate::since(began, images))
    };
    context.reporter.phase("loading validation images for the first time");
    pass()?;
    context.reporter.phase("measuring validation");
    let began = Instant::now();
    let mut rates = Vec::with_capacity(task.rounds);
    loop {
        rates.push(pass()?);
        let enough = rates.len() >= task.rounds || began.elapsed() >= time;
        // Rank 0 decides for all.
        if context.broadcast(u8::from(enough))? > 0 {
            return Ok(rates);
        }
    }
}

/// Counts the images of one pass, and ends it when its time is over.
struct Follower {
    until: Instant,
    images: usize,
    /// The phases so far, if they are measured.
    timed: Option<(Stopwatch, ValPhases)>,
}

impl Follower {
    fn until(until: Instant) -> Self {
        Self { until, images: 0, timed: None }
    }
}

impl Observer for Follower {
    fn image(&mut self, _image: &ImageResult<'_>) -> Result<(), TrainError> {
        self.images += 1;
        Ok(())
    }

    fn stage_done(&mut self, stage: Stage) {
        let Some((watch, sums)) = &mut self.timed else { return };
        let seconds = watch.lap();
        match stage {
            // Waiting for the loader depends on its threads, and not on the model.
            Stage::Load => {}
            Stage::Preprocess => sums.preprocess += seconds,
            Stage::Inference => sums.inference += seconds,
            Stage::Nms => sums.nms += seconds,
        }
    }

    fn batch_done(&mut self, _done: usize, _batches: usize) -> bool {
        Instant::now() < self.until
    }
}

//! What the measurements share: repeating until the time is long enough, and reporting.

use std::time::{Duration, Instant};

use yolo_plan::event::{Event, Measure};

use crate::error::TrainError;
use crate::rank::context::Context;
use crate::synchronize::synchronize;

/// Minimum duration of a measurement.
const LONG_ENOUGH: Duration = Duration::from_millis(500);

/// Reports a measured value.
pub(super) fn report(context: &Context, measure: Measure, value: f64) {
    context.reporter.send(&Event::Measured { measure, value });
}

/// Repeats `step` for long enough and returns the seconds per repetition. The first one, in which
/// libraries initialize, does not count.
pub(super) fn seconds_of(
    device: tch::Device,
    mut step: impl FnMut() -> Result<(), TrainError>,
) -> Result<f64, TrainError> {
    step()?;
    synchronize(device);
    let began = Instant::now();
    let mut repetitions = 0;
    while began.elapsed() < LONG_ENOUGH {
        step()?;
        synchronize(device);
        repetitions += 1;
    }
    Ok(began.elapsed().as_secs_f64() / f64::from(repetitions))
}

//! What `yolo doctor --deep` has a rank do: a matrix product and copies on its device, reading and
//! decoding images, and sums over all ranks, each with a result that is checked. Every step is a
//! phase, so that the doctor can say which rank hung in what.

mod disk;
mod link;
mod speed;

use std::time::{Duration, Instant};

use yolo_plan::event::{Event, Measure};
use yolo_plan::run::ProbeTask;

use crate::error::TrainError;
use crate::rank::{Ending, Rank};

/// How long one measurement goes on, at least.
const LONG_ENOUGH: Duration = Duration::from_millis(500);

/// Tries everything that the task names.
pub(crate) fn run(context: &Rank, task: &ProbeTask) -> Result<Ending, TrainError> {
    let began = Instant::now();
    if !task.links_only {
        speed::measure(context)?;
        disk::measure(context, &task.images);
    }
    link::measure(context)?;
    context.reporter.send(&Event::Finished {
        files: Vec::new(),
        epochs: 0,
        seconds: began.elapsed().as_secs_f64(),
        stopped_early: false,
    });
    Ok(Ending::Finished)
}

fn tell(context: &Rank, measure: Measure, value: f64) {
    context.reporter.send(&Event::Measured { measure, value });
}

/// Repeats until it took long enough, and gives the seconds of one time. The first time, in which
/// libraries set themselves up, is not counted.
fn seconds_of(
    device: tch::Device,
    mut step: impl FnMut() -> Result<(), TrainError>,
) -> Result<f64, TrainError> {
    step()?;
    wait_for(device);
    let began = Instant::now();
    let mut times = 0;
    while began.elapsed() < LONG_ENOUGH {
        step()?;
        wait_for(device);
        times += 1;
    }
    Ok(began.elapsed().as_secs_f64() / f64::from(times))
}

/// A GPU works on while the program goes on.
fn wait_for(device: tch::Device) {
    if let tch::Device::Cuda(index) = device {
        tch::Cuda::synchronize(index as i64);
    }
}

//! What ranks do for `yolo doctor --deep`: a matrix product and copies on the device, reading and
//! decoding images, and sums over all ranks, with checked results. Every step is a phase, so that
//! the doctor can say which rank hung where.

mod all_reduce;
mod device;
mod disk;
mod measure;

use std::time::Instant;

use yolo_plan::event::Event;
use yolo_plan::run::DeepCheckTask;

use crate::error::TrainError;
use crate::rank::context::{Context, Ending};

/// Measures what the task asks for.
pub(crate) fn run(context: &Context, task: &DeepCheckTask) -> Result<Ending, TrainError> {
    let began = Instant::now();
    if !task.links_only {
        device::measure(context)?;
        disk::measure(context, &task.images);
    }
    all_reduce::measure(context)?;
    context.reporter.send(&Event::Finished {
        files: Vec::new(),
        epochs: 0,
        seconds: began.elapsed().as_secs_f64(),
        stopped_early: false,
    });
    Ok(Ending::Finished)
}

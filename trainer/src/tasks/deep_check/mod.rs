//! What ranks do for `yolo doctor --deep`: a matrix product and copies on the device, reading and
//! decoding images, sums over all ranks and, in one process, copies between the devices, with checked
//! results. Every step is a phase, so that the doctor can say which rank hung where.

mod all_reduce;
mod copies;
mod device;
mod disk;
mod measure;

use std::time::Instant;

use yolo_plan::event::Event;
use yolo_plan::run::{DeepCheckTask, DeepPart};

use crate::error::TrainError;
use crate::rank::context::{Context, Ending};

/// Measures what the task asks for.
pub(crate) fn run(context: &Context, task: &DeepCheckTask) -> Result<Ending, TrainError> {
    let began = Instant::now();
    match task.part {
        DeepPart::Everything => {
            device::measure(context, task)?;
            disk::measure(context, &task.images);
            all_reduce::measure(context)?;
        }
        DeepPart::Links => all_reduce::measure(context)?,
        DeepPart::Copies => copies::measure(context)?,
    }
    context.reporter.send(&Event::Finished {
        files: Vec::new(),
        epochs: 0,
        seconds: began.elapsed().as_secs_f64(),
        stopped_early: false,
    });
    Ok(Ending::Finished)
}

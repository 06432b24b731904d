//! Training as one rank does it (spec §6). [`train`] is the run: `prepare` builds everything,
//! `epoch` trains one epoch, `end_epoch` validates and saves, and `finish` leaves the files of a
//! finished run. All ranks train and validate; rank 0 writes and decides.

mod changed_data;
mod early_stopping;
mod end_epoch;
mod epoch;
mod event_log;
mod finish;
mod prepare;
mod training;

use std::time::Instant;

use yolo_plan::RunPlan;
use yolo_plan::run::TrainTask;

use self::end_epoch::Decision;
use self::prepare::prepare;
use crate::error::TrainError;
use crate::rank::context::{Context, Ending};

/// Trains as the plan says, from the start or from a checkpoint.
///
/// # Errors
/// When a file cannot be read or written, memory runs out, a peer is lost, or the loss diverges.
pub fn train(context: &Context, plan: &RunPlan, task: &TrainTask) -> Result<Ending, TrainError> {
    let began = Instant::now();
    let mut training = prepare(context, plan, task)?;
    // Invariant: until here nothing would be lost, so ranks need not agree to stop.
    context.hold_stop_requests();
    // A run that was killed while it finished has no epoch left.
    let mut stopped_early = training.was_stopped_early();
    while !stopped_early && training.progress.epochs_done < task.epochs {
        let number = training.progress.epochs_done;
        let epoch_began = Instant::now();
        let Some(losses) = training.run_epoch(number)? else {
            return training.interrupt();
        };
        match training.end_epoch(number, losses, epoch_began.elapsed().as_secs_f64())? {
            // With --nosave, nothing was saved at the end of the epoch.
            Decision::Continue if training.stops_before_next_epoch()? => return training.interrupt(),
            Decision::Continue => {}
            Decision::StopEarly => stopped_early = true,
            Decision::Interrupt => return training.interrupt(),
        }
    }
    training.finish(began.elapsed().as_secs_f64(), stopped_early)?;
    Ok(Ending::Finished)
}

//! What a rank can be asked to do, one folder per task of a plan. A new task gets a folder here
//! and an arm in [`perform`] and [`timeouts`].

mod bench;
mod deep_check;
pub mod export;
mod predict;
pub mod train;
pub mod val;

use yolo_plan::RunPlan;
use yolo_plan::run::Task;

use crate::error::TrainError;
use crate::rank::context::{Context, Ending};
use crate::rank::process_group::Timeouts;

/// Does the task of the plan.
///
/// # Errors
/// The first failure of this rank.
pub fn perform(context: &Context, plan: &RunPlan) -> Result<Ending, TrainError> {
    let ending = match &plan.task {
        Task::Train(task) => train::train(context, plan, task),
        Task::Join(_) => Err(TrainError::new("rank 0 has not sent the run that is to be resumed")),
        Task::Val(task) => val::run(context, plan, task),
        Task::Export(task) => export::run(context, plan, task),
        Task::Predict(task) => predict::run(context, plan, task),
        Task::Bench(task) => bench::run(context, task),
        Task::DeepCheck(task) => deep_check::run(context, task),
    };
    context.warn_of_slow_copies();
    ending
}

/// How long the ranks of a task wait for each other.
pub fn timeouts(task: &Task) -> Timeouts {
    match task {
        Task::Train(_)
        | Task::Join(_)
        | Task::Val(_)
        | Task::Predict(_)
        | Task::Export(_)
        | Task::Bench(_) => Timeouts::RUN,
        Task::DeepCheck(_) => Timeouts::DEEP_CHECK,
    }
}

//! From a plan to live ranks, and to one answer: how the run ended. The first failure wins: the
//! whole group is stopped, no process is left behind, and the answer names the rank, what it was
//! doing and why. Ranks report events over a pipe; what they or libtorch print goes to one log file
//! per rank.

mod blame;
mod checkpoint;
mod environment;
mod failure;
mod process;
mod programs;
mod rank;
pub(crate) mod run_folder;
mod signals;
mod silence;
mod supervisor;

use std::path::Path;
use std::time::Duration;

use yolo_plan::RunPlan;
use yolo_plan::event::Event;

use checkpoint::LastCheckpoint;
pub(crate) use failure::{LaunchError, timeout};
pub(crate) use programs::Programs;
pub(crate) use supervisor::RunEnd;

/// Starts the ranks of `plan`, whose file is `plan_file`, and watches them until all have ended.
/// `listen` gets every event with the number of its rank.
///
/// # Errors
/// When a rank cannot be started or fails.
pub(crate) fn run(
    plan: &RunPlan,
    plan_file: &Path,
    programs: &Programs,
    listen: &mut dyn FnMut(usize, &Event),
) -> Result<RunEnd, LaunchError> {
    let checkpoint = LastCheckpoint::of(plan);
    let group = process::start(plan, plan_file, programs)?;
    supervisor::watch(group, checkpoint, None, listen)
}

/// Like [`run`], with a time limit: ranks that have not ended by then are killed, and the error says
/// what each was doing.
///
/// # Errors
/// When a rank cannot be started, fails, or takes too long.
pub(crate) fn run_within(
    limit: Duration,
    plan: &RunPlan,
    plan_file: &Path,
    programs: &Programs,
    listen: &mut dyn FnMut(usize, &Event),
) -> Result<RunEnd, LaunchError> {
    let checkpoint = LastCheckpoint::of(plan);
    let group = process::start(plan, plan_file, programs)?;
    supervisor::watch(group, checkpoint, Some(limit), listen)
}

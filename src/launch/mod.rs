//! From a plan to live ranks, and back to one answer: how the run ended. The first failure wins:
//! the whole group is stopped, nothing is left behind, and the answer names the rank, what it was
//! doing and why. Ranks speak in events over a pipe of their own; what they or libtorch print goes
//! to a log file each.

mod environment;
mod failure;
mod process;
mod silence;
mod supervisor;

use std::path::{Path, PathBuf};
use std::time::Duration;

use yolo_plan::RunPlan;
use yolo_plan::event::Event;

pub(crate) use failure::LaunchError;

use crate::setup::Libtorch;

/// How a run ended when no rank failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All ranks finished.
    Finished,
    /// The run was interrupted; its state stands in this file, if it got that far.
    Interrupted {
        /// The checkpoint from which the run can go on.
        resume_from: Option<PathBuf>,
    },
}

/// The programs of a run.
#[derive(Debug, Clone)]
pub(crate) struct Programs<'a> {
    /// The trainer.
    pub(crate) trainer: &'a Path,
    /// The libtorch that it loads.
    pub(crate) libtorch: &'a Libtorch,
}

/// Starts the ranks of `plan`, whose file is `plan_file`, and watches them to their end.
/// `listen` gets every event with the number of its rank.
///
/// # Errors
/// When a rank cannot be started or fails.
pub(crate) fn run(
    plan: &RunPlan,
    plan_file: &Path,
    programs: &Programs<'_>,
    listen: &mut dyn FnMut(usize, &Event),
) -> Result<Outcome, LaunchError> {
    let group = process::start(plan, plan_file, programs)?;
    supervisor::watch(group, &plan.run_dir, None, listen)
}

/// As [`run`], for so long at most: ranks that are not done then are killed, and the error says what
/// each was doing.
///
/// # Errors
/// When a rank cannot be started, fails, or is late.
pub(crate) fn run_within(
    limit: Duration,
    plan: &RunPlan,
    plan_file: &Path,
    programs: &Programs<'_>,
    listen: &mut dyn FnMut(usize, &Event),
) -> Result<(), LaunchError> {
    let group = process::start(plan, plan_file, programs)?;
    supervisor::watch(group, &plan.run_dir, Some(limit), listen).map(|_| ())
}

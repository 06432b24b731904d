//! From a plan to live ranks, and to one answer: how the run ended. The first failure wins: the
//! whole group is stopped, no process is left behind, and the answer names the rank, what it was
//! doing and why. Ranks report events over a pipe; each has a log file with what it reported and what
//! libtorch printed.

mod cause;
mod checkpoint;
mod environment;
mod failure;
mod host;
mod log;
mod log_text;
pub(crate) mod machines;
mod memory;
mod message;
mod nccl;
mod notices;
mod other_machines;
mod process;
mod programs;
mod rank;
mod ras;
pub(crate) mod run_folder;
mod signals;
mod supervisor;

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use yolo_plan::RunPlan;
use yolo_plan::event::Event;

use checkpoint::LastCheckpoint;
pub(crate) use checkpoint::ON_SEVERAL;
pub(crate) use failure::{LaunchError, RankFailure, timeout};
pub(crate) use log::have_output;
use machines::Team;
use process::Store;
pub(crate) use programs::Programs;
pub(crate) use supervisor::RunEnd;
use supervisor::Terms;

/// Starts the ranks of `plan`, whose file is `plan_file`, and watches them until all have ended.
/// `listen` gets every event with the number of its rank, and warnings of the supervisor without one.
///
/// # Errors
/// When a rank cannot be started or fails.
pub(crate) fn run(
    plan: &RunPlan,
    plan_file: &Path,
    programs: &Programs,
    listen: &mut dyn FnMut(Option<usize>, &Event),
) -> Result<RunEnd, LaunchError> {
    start_and_watch((plan, plan_file), programs, None, None, listen)
}

/// Like [`run`], for the master of a run on several machines, whose ranks it watches all.
///
/// # Errors
/// When a rank cannot be started or fails, or a machine is lost.
pub(crate) fn run_with(
    team: &mut Team,
    plan: &RunPlan,
    plan_file: &Path,
    programs: &Programs,
    listen: &mut dyn FnMut(Option<usize>, &Event),
) -> Result<RunEnd, LaunchError> {
    start_and_watch((plan, plan_file), programs, Some(team), None, listen)
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
    listen: &mut dyn FnMut(Option<usize>, &Event),
) -> Result<RunEnd, LaunchError> {
    start_and_watch((plan, plan_file), programs, None, Some(limit), listen)
}

fn start_and_watch(
    (plan, plan_file): (&RunPlan, &Path),
    programs: &Programs,
    mut team: Option<&mut Team>,
    limit: Option<Duration>,
    listen: &mut dyn FnMut(Option<usize>, &Event),
) -> Result<RunEnd, LaunchError> {
    let mut plan = plan.clone();
    let ras = nccl::prepare(&mut plan);
    let plan = &plan;
    let checkpoint = LastCheckpoint::of(plan, programs);
    let heard = team.as_mut().and_then(|team| team.take_heard());
    let team = team.as_deref();
    let starts = Cell::new(0);
    let start_all = |plan: &RunPlan, plan_file: &Path| {
        let Some(team) = team else { return process::start(plan, plan_file, programs, None) };
        let address = team.address();
        let store = Store::open(address).map_err(|source| LaunchError::Socket { address, source })?;
        let store_address = store.address;
        let started = process::start(plan, plan_file, programs, Some(store))?;
        team.start(starts.replace(starts.get() + 1), plan, store_address);
        Ok(started)
    };
    let start = || start_all(plan, plan_file);
    let restart = |checkpoint| {
        let plan = plan.clone().resumed_from(checkpoint);
        let plan_file = plan.write()?;
        start_all(&plan, &plan_file)
    };
    let restarts = plan.task.train().map_or(0, |task| task.max_restarts);
    let (first, world_size) = (plan.ranks.first, plan.ranks.world_size);
    let terms = Terms { first, world_size, limit, restarts, restart: &restart, ras, listen, team };
    supervisor::watch(start, heard, checkpoint, terms)
}

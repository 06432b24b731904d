//! The start of a rank: checks the plan's version, watches for signals, opens the device, says
//! hello to the supervisor and meets the other ranks.

use std::rc::Rc;

use tch_train::Determinism;
use yolo_base::env::YOLO_IMAGES_FD;
use yolo_data::loader::ImageMemory;
use yolo_plan::RunPlan;
use yolo_plan::event::{Event, PROTOCOL};
use yolo_plan::run::Task;

use super::affinity;
use super::context::Context;
use super::environment::descriptor;
use super::life::Life;
use super::meeting::meet;
use super::process_group;
use super::stop::Stop;
use super::{device, reporter::Reporter};
use crate::error::TrainError;
use crate::tasks::timeouts;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Starts rank number `rank` of the plan, which gets the task of rank 0 if it is to join its run.
///
/// # Errors
/// When the plan is of another version, the device cannot be used, or a peer does not come.
pub(super) fn start(plan: &mut RunPlan, rank: usize, reporter: Rc<Reporter>) -> Result<Context, TrainError> {
    check_version(plan)?;
    end_with_supervisor()?;
    // Before the first thread, since threads run where the one that starts them does.
    affinity::bind()?;
    let life = Life::watch_signals(reporter.connection())
        .map_err(|error| TrainError::new(format!("cannot handle signals: {error}")))?;
    let stop = Stop::watch()?;
    // Before anything that can hang: opening a device, or waiting for the other ranks.
    life.start().map_err(|error| TrainError::new(format!("cannot start the heartbeat thread: {error}")))?;
    let devices = device::open(&plan.ranks, rank)?;
    let device = devices.first();
    // With a GPU, libtorch's operations on the CPU are few and small. Several threads for each would wait for each other,
    // and spin in between on the cores that the loader needs.
    tch_train::set_num_threads(if device.is_cuda() { 1 } else { plan.ranks.threads })?;
    if let Some(bytes) = plan.ranks.page_locked {
        tch_train::limit_page_locked_memory(bytes);
    }
    reporter.send(&Event::Hello {
        protocol: PROTOCOL,
        version: VERSION.to_owned(),
        rank,
        pid: std::process::id(),
        device: devices.name(),
        threads: plan.ranks.threads,
    });
    let mut context = Context {
        rank,
        world: plan.ranks.world_size,
        device,
        devices,
        threads: plan.ranks.threads,
        group: None,
        images: ImageMemory::of_rank(plan.ranks.on_this_machine(), descriptor(YOLO_IMAGES_FD)),
        reporter,
        life,
        stop,
    };
    if context.world > 1 || plan.ranks.backend.is_some() {
        context.reporter.phase("waiting for the other ranks");
        let timeouts = timeouts(&plan.task);
        let joined = if plan.ranks.are_all() {
            process_group::join(rank, &plan.ranks, device, timeouts)?
        } else {
            let meeting = meet(plan, rank, timeouts.rendezvous, &context.reporter)?;
            process_group::join_at(&meeting, rank, &plan.ranks, device, timeouts)?
        };
        if let Some(version) = joined.nccl.filter(|_| rank == 0) {
            context.reporter.note(format!("the ranks are connected over NCCL {version}"));
        }
        context.group = Some(Rc::new(joined.group));
    }
    // Not earlier, because a rank that joins a run has its task only now.
    tch_train::set_determinism(determinism(&plan.task))?;
    Ok(context)
}

/// A resumed run continues bit by bit only if equal steps have equal results. Operations without a deterministic
/// algorithm are used with a warning, so no model is refused for one.
fn determinism(task: &Task) -> Determinism {
    match task.training() {
        Some(training) if training.nondeterministic => Determinism::Off,
        _ => Determinism::Warn,
    }
}

fn check_version(plan: &RunPlan) -> Result<(), TrainError> {
    if plan.program == VERSION {
        return Ok(());
    }
    Err(TrainError::new(format!(
        "this yolo-trainer is version {VERSION}, but yolo {} wrote the plan",
        plan.program
    ))
    .with_hint("use both programs from one release; in a checkout, run `yolo` again to rebuild the trainer"))
}

/// Asks the system for SIGTERM when the supervisor dies, however it dies, so that no rank is left
/// behind. A rank without a supervisor does not ask.
#[cfg(target_os = "linux")]
fn end_with_supervisor() -> Result<(), TrainError> {
    if std::env::var_os(yolo_base::env::YOLO_EVENTS_FD).is_none() {
        return Ok(());
    }
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))
        .map_err(|error| TrainError::new(format!("cannot watch for the end of the supervisor: {error}")))
}

#[cfg(not(target_os = "linux"))]
fn end_with_supervisor() -> Result<(), TrainError> {
    Ok(())
}

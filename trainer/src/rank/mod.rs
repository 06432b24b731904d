//! One process of a run, from its environment to its exit code: it reads the plan, finds its
//! device and its peers, does the task, and tells the supervisor how it ended. Rank, world size
//! and rendezvous come from the variables that torchrun sets, so it also runs under torchrun.

pub mod peers;

use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tch_distributed::{ProcessGroup, TcpStore};
use yolo_plan::RunPlan;
use yolo_plan::device::Device;
use yolo_plan::event::{Event, PROTOCOL};
use yolo_plan::run::Task;

use crate::error::TrainError;
use crate::reporter::Reporter;
use crate::{probe, train, val};

/// Exit code of a run that was interrupted and saved its state, as shells report SIGINT.
pub const INTERRUPTED: u8 = 130;

/// How a task ended when nothing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Everything was done.
    Finished,
    /// It was asked to stop, and stopped with its state saved.
    Interrupted,
}

/// What every task of a rank needs.
#[derive(Debug)]
pub struct Rank {
    /// Number of this process among all.
    pub rank: usize,
    /// How many processes there are.
    pub world: usize,
    /// Where tensors live.
    pub device: tch::Device,
    /// The peers; `None` for a single rank.
    pub group: Option<Rc<ProcessGroup>>,
    /// The voice.
    pub reporter: Rc<Reporter>,
    stop: Arc<AtomicBool>,
    // The store outlives the group that was made on it.
    _store: Option<TcpStore>,
}

impl Rank {
    /// Whether this rank writes files and speaks.
    pub fn is_main(&self) -> bool {
        self.rank == 0
    }

    /// Whether this process was asked to stop, or nobody watches it any more.
    pub fn asked_to_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.reporter.orphaned()
    }

    /// Whether any rank was asked to stop: all ranks agree on the answer.
    pub fn all_asked_to_stop(&self) -> Result<bool, TrainError> {
        let Some(group) = &self.group else { return Ok(self.asked_to_stop()) };
        let flag = tch::Tensor::from_slice(&[f32::from(u8::from(self.asked_to_stop()))]);
        group.all_reduce(&flag)?;
        Ok(flag.f_double_value(&[0])? > 0.0)
    }
}

/// Runs the plan at `path` as the rank that the environment names.
pub fn run(path: &Path) -> ExitCode {
    let rank = number("RANK").unwrap_or(0);
    let reporter = Rc::new(Reporter::from_environment(rank));
    match plan_and_perform(path, rank, &reporter) {
        Ok(Ending::Finished) => ExitCode::SUCCESS,
        Ok(Ending::Interrupted) => ExitCode::from(INTERRUPTED),
        Err(error) => fail(&reporter, &error),
    }
}

fn plan_and_perform(path: &Path, rank: usize, reporter: &Rc<Reporter>) -> Result<Ending, TrainError> {
    let plan = RunPlan::read(path)?;
    let context = start(&plan, rank, Rc::clone(reporter))?;
    perform(&context, &plan)
}

fn perform(context: &Rank, plan: &RunPlan) -> Result<Ending, TrainError> {
    match &plan.task {
        Task::Train(task) => train::train(context, plan, task),
        Task::Val(task) => val::run(context, plan, task),
        Task::Probe(task) => probe::run(context, task),
    }
}

fn fail(reporter: &Reporter, error: &TrainError) -> ExitCode {
    reporter.send(&Event::Failed {
        message: error.to_string(),
        hint: error.hint().map(str::to_owned),
        doing: reporter.doing(),
        peer_lost: error.peer_lost(),
    });
    ExitCode::FAILURE
}

fn start(plan: &RunPlan, rank: usize, reporter: Rc<Reporter>) -> Result<Rank, TrainError> {
    let (device, stop, store, group) = connect(plan, rank, &reporter)?;
    Ok(Rank {
        rank,
        world: plan.ranks.world_size,
        device,
        group: group.map(Rc::new),
        reporter,
        stop,
        _store: store,
    })
}

type Connected = (tch::Device, Arc<AtomicBool>, Option<TcpStore>, Option<ProcessGroup>);

fn connect(plan: &RunPlan, rank: usize, reporter: &Reporter) -> Result<Connected, TrainError> {
    let version = env!("CARGO_PKG_VERSION");
    if plan.program != version {
        return Err(TrainError::new(format!(
            "this yolo-trainer is version {version}, and the plan was written by yolo {}",
            plan.program
        ))
        .with_hint(
            "use the two programs of one release; from a checkout, run `yolo` again to rebuild the trainer",
        ));
    }
    end_with_supervisor()?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|error| TrainError::new(format!("signals could not be handled: {error}")))?;
    }
    let local = number("LOCAL_RANK").unwrap_or(rank);
    let device = device(plan, local)?;
    tch_train::set_num_threads(plan.ranks.threads)?;
    reporter.send(&Event::Hello {
        protocol: PROTOCOL,
        version: version.to_owned(),
        rank,
        pid: std::process::id(),
        device: describe(device),
        threads: plan.ranks.threads,
    });
    reporter
        .give_signs_of_life()
        .map_err(|error| TrainError::new(format!("a thread could not be started: {error}")))?;
    if plan.ranks.world_size == 1 {
        return Ok((device, stop, None, None));
    }
    reporter.phase("waiting for the other ranks");
    let patience = match plan.task {
        Task::Probe(_) => peers::Patience::PROBE,
        _ => peers::Patience::RUN,
    };
    let (store, group) = peers::meet(rank, &plan.ranks, patience)?;
    Ok((device, stop, Some(store), Some(group)))
}

/// Asks the system for SIGTERM when the supervisor dies, however it dies: no rank is left behind.
/// A rank without a supervisor (under torchrun) has a parent that looks after it.
#[cfg(target_os = "linux")]
fn end_with_supervisor() -> Result<(), TrainError> {
    if std::env::var_os(yolo_plan::event::EVENTS_FD).is_none() {
        return Ok(());
    }
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))
        .map_err(|error| TrainError::new(format!("the supervisor's end could not be watched: {error}")))
}

#[cfg(not(target_os = "linux"))]
fn end_with_supervisor() -> Result<(), TrainError> {
    Ok(())
}

/// Finds the device of a local rank, opening libtorch's CUDA half first: a CUDA query that comes
/// earlier would settle for good that there is none.
fn device(plan: &RunPlan, local: usize) -> Result<tch::Device, TrainError> {
    let planned = plan.ranks.devices.get(local).copied().ok_or_else(|| {
        TrainError::new(format!(
            "local rank {local} has no device: the plan names {} for this machine",
            plan.ranks.devices.len()
        ))
    })?;
    match planned {
        Device::Cpu => Ok(tch::Device::Cpu),
        Device::Cuda(index) => {
            let folder = std::env::var_os("YOLO_LIBTORCH_LIB").ok_or_else(|| {
                TrainError::new("YOLO_LIBTORCH_LIB is not set, so libtorch_cuda.so cannot be found")
                    .with_hint("start the trainer through `yolo train`, which sets it")
            })?;
            let cuda = tch_train::cuda::open(Path::new(&folder)).map_err(|error| {
                TrainError::new(format!("device {index} needs libtorch with CUDA: {error}"))
                    .with_hint("name a libtorch 2.11 with CUDA in LIBTORCH, or train with `--device cpu`")
            })?;
            // The launcher shows each rank its own device alone, as CUDA device 0.
            if cuda.devices() == 0 {
                return Err(TrainError::new(format!(
                    "libtorch sees no CUDA device where device {index} was asked for"
                ))
                .with_hint("`yolo doctor` says why; `--device cpu` trains without a GPU"));
            }
            Ok(tch::Device::Cuda(0))
        }
    }
}

fn describe(device: tch::Device) -> String {
    match device {
        tch::Device::Cuda(index) => format!("cuda:{index}"),
        _ => "cpu".to_owned(),
    }
}

fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

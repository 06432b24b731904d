//! One start of ranks on some of the devices, in a folder of its own that is removed afterwards, and
//! what they measured until they were done, failed or out of time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use yolo_plan::RunPlan;
use yolo_plan::device::{Backend, Device};
use yolo_plan::event::{Event, Measure};
use yolo_plan::run::{PLAN_VERSION, ProbeTask, Ranks, Task};

use crate::launch::{self, LaunchError, Programs};
use crate::setup::Libtorch;

/// The programs that all trials start.
#[derive(Debug)]
pub(super) struct Trials<'a> {
    pub(super) trainer: &'a Path,
    pub(super) libtorch: &'a Libtorch,
}

/// What came of one start.
#[derive(Debug, Default)]
pub(super) struct Trial {
    /// What each rank measured; ranks are numbered as those of all devices.
    pub(super) measured: BTreeMap<usize, Vec<(Measure, f64)>>,
    pub(super) warnings: Vec<String>,
    pub(super) failure: Option<Failure>,
}

/// Why ranks were not done.
#[derive(Debug)]
pub(super) struct Failure {
    /// One sentence that names the rank and what it was doing.
    pub(super) what: String,
    pub(super) hint: Option<String>,
}

impl Trials<'_> {
    /// Starts a rank on each of these of the devices. Without `images` only the links are tried.
    pub(super) fn run(
        &self,
        devices: &[Device],
        ranks: &[usize],
        images: Option<Vec<PathBuf>>,
        limit: Duration,
        doing: &dyn Fn(usize, &str),
    ) -> Trial {
        let mut trial = Trial::default();
        let mut listen = |rank: usize, event: &Event| {
            let rank = ranks.get(rank).copied().unwrap_or(rank);
            match event {
                Event::Phase { doing: what } => doing(rank, what),
                Event::Measured { measure, value } => {
                    trial.measured.entry(rank).or_default().push((*measure, *value));
                }
                Event::Warning { message } => trial.warnings.push(format!("rank {rank}: {message}")),
                _ => {}
            }
        };
        let chosen: Vec<Device> = ranks.iter().filter_map(|&rank| devices.get(rank).copied()).collect();
        trial.failure = self.start(chosen, images, limit, &mut listen).err().map(|error| told(error, ranks));
        trial
    }

    fn start(
        &self,
        devices: Vec<Device>,
        images: Option<Vec<PathBuf>>,
        limit: Duration,
        listen: &mut dyn FnMut(usize, &Event),
    ) -> Result<(), LaunchError> {
        let folder = tempfile::Builder::new()
            .prefix("yolo-deep-")
            .tempdir()
            .map_err(|source| LaunchError::Folder { source })?;
        let plan = plan(devices, images, folder.path());
        let file = plan
            .write()
            .map_err(|error| LaunchError::Folder { source: std::io::Error::other(error.to_string()) })?;
        let programs = Programs { trainer: self.trainer, libtorch: self.libtorch };
        launch::run_within(limit, &plan, &file, &programs, listen)
    }
}

fn plan(devices: Vec<Device>, images: Option<Vec<PathBuf>>, folder: &Path) -> RunPlan {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let world_size = devices.len();
    RunPlan {
        version: PLAN_VERSION,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        ranks: Ranks {
            world_size,
            threads: (cores / world_size.max(1)).max(1),
            backend: (world_size > 1).then_some(Backend::Gloo),
            devices,
        },
        run_dir: folder.to_owned(),
        task: Task::Probe(ProbeTask { links_only: images.is_none(), images: images.unwrap_or_default() }),
    }
}

/// The failure with the ranks' numbers among all devices.
fn told(error: LaunchError, ranks: &[usize]) -> Failure {
    let number = |rank: usize| ranks.get(rank).copied().unwrap_or(rank);
    let hint = error.hint().map(ToOwned::to_owned);
    let what = match error {
        LaunchError::Late { doing } => {
            let each: Vec<String> =
                doing.iter().map(|(rank, doing)| format!("rank {} was {doing}", number(*rank))).collect();
            format!("the ranks hang, and were ended: {}", each.join(", "))
        }
        LaunchError::Rank(mut failure) => {
            failure.rank = number(failure.rank);
            failure.to_string()
        }
        other => other.to_string(),
    };
    Failure { what, hint }
}

//! One start of ranks on some of the devices, in a temporary folder, and what they measured until
//! they finished, failed or ran out of time.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use yolo_base::Hint as _;
use yolo_plan::RunPlan;
use yolo_plan::backend::{Backend, Connection};
use yolo_plan::device::Device;
use yolo_plan::event::{Event, Measure};
use yolo_plan::run::{DeepCheckTask, plan_deep_check};

use crate::launch::{self, LaunchError, Programs};

/// A rank with its device, for messages.
pub(super) fn name_of(rank: usize, devices: &[Device]) -> String {
    format!("rank {rank} ({})", devices.get(rank).map_or("no device".to_owned(), ToString::to_string))
}

/// The programs that all trials start.
#[derive(Debug)]
pub(super) struct Trials {
    pub(super) programs: Programs,
    /// What connects the ranks.
    pub(super) connection: Connection,
}

/// The result of one start.
#[derive(Debug, Default)]
pub(super) struct Trial {
    /// What each rank measured. Ranks are numbered as among all devices.
    pub(super) measured: BTreeMap<usize, Vec<(Measure, f64)>>,
    pub(super) warnings: Vec<String>,
    /// How the ranks communicated; `None` for a single rank.
    pub(super) backend: Option<Backend>,
    pub(super) failure: Option<Failure>,
}

/// Why ranks did not finish.
#[derive(Debug)]
pub(super) struct Failure {
    /// The rank and what it was doing.
    pub(super) what: String,
    pub(super) hint: Option<String>,
}

impl Trials {
    /// Starts these ranks on their devices. Without `images` only the links are tested.
    pub(super) fn run(
        &self,
        devices: &[Device],
        ranks: &[usize],
        images: Option<Vec<PathBuf>>,
        limit: Duration,
        doing: &dyn Fn(usize, &str),
    ) -> Trial {
        let chosen: Vec<Device> = ranks.iter().filter_map(|&rank| devices.get(rank).copied()).collect();
        let mut trial = Trial { backend: self.connection.backend, ..Trial::default() };
        let mut listen = |rank: Option<usize>, event: &Event| {
            let Some(rank) = rank else {
                // The supervisor itself only warns.
                trial.warnings.extend(match event {
                    Event::Warning { message } => Some(message.clone()),
                    _ => None,
                });
                return;
            };
            let rank = ranks.get(rank).copied().unwrap_or(rank);
            match event {
                Event::Phase { doing: what, .. } => doing(rank, what),
                Event::Measured { measure, value } => {
                    trial.measured.entry(rank).or_default().push((*measure, *value));
                }
                Event::Warning { message } => trial.warnings.push(format!("rank {rank}: {message}")),
                _ => {}
            }
        };
        trial.failure =
            self.start(chosen, images, limit, &mut listen).err().map(|error| renumber(error, ranks));
        trial
    }

    fn start(
        &self,
        devices: Vec<Device>,
        images: Option<Vec<PathBuf>>,
        limit: Duration,
        listen: &mut dyn FnMut(Option<usize>, &Event),
    ) -> Result<(), LaunchError> {
        let folder = tempfile::Builder::new()
            .prefix("yolo-deep-")
            .tempdir()
            .map_err(|source| LaunchError::Folder { source })?;
        let plan = plan(devices, self.connection.clone(), images, folder.path());
        let file = plan.write()?;
        launch::run_within(limit, &plan, &file, &self.programs, listen).map(|_| ())
    }
}

fn plan(
    devices: Vec<Device>,
    connection: Connection,
    images: Option<Vec<PathBuf>>,
    folder: &Path,
) -> RunPlan {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let task = DeepCheckTask { links_only: images.is_none(), images: images.unwrap_or_default() };
    plan_deep_check(task, devices, connection, cores, folder.to_owned())
}

/// The failure with the ranks' numbers among all devices.
fn renumber(error: LaunchError, ranks: &[usize]) -> Failure {
    let number = |rank: usize| ranks.get(rank).copied().unwrap_or(rank);
    let hint = error.hint().map(Cow::into_owned);
    let what = match error {
        LaunchError::Timeout { doing } => {
            let doing: Vec<_> = doing.into_iter().map(|(rank, doing)| (number(rank), doing)).collect();
            launch::timeout(&doing)
        }
        LaunchError::Rank(mut failure) => {
            failure.rank = number(failure.rank);
            failure.to_string()
        }
        other => other.to_string(),
    };
    Failure { what, hint }
}

//! One start of ranks on some of the devices, in a temporary folder, and what they measured until
//! they finished, failed or ran out of time. Several threads may start ranks at once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use yolo_base::Hint as _;
use yolo_base::env::NCCL_P2P_DISABLE;
use yolo_plan::backend::Connection;
use yolo_plan::device::Device;
use yolo_plan::event::{Event, Measure};
use yolo_plan::run::{DeepCheckTask, DeepPart, plan_deep_check};

use super::observed::{Copy, Failure};
use crate::launch::{self, LaunchError, Programs};

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
    /// Copies between devices.
    pub(super) copies: Vec<Copy>,
    pub(super) warnings: Vec<String>,
    pub(super) failure: Option<Failure>,
}

/// What is started.
#[derive(Debug, Clone)]
pub(super) struct Wanted<'a> {
    /// The ranks, as among all devices.
    pub(super) ranks: &'a [usize],
    pub(super) task: DeepCheckTask,
    /// Without direct copies between GPUs.
    pub(super) without_p2p: bool,
    pub(super) limit: Duration,
}

/// The test of the links alone.
pub(super) fn links_only() -> DeepCheckTask {
    DeepCheckTask { part: DeepPart::Links, images: Vec::new(), pinned: 0, load: 0 }
}

impl Trials {
    /// Starts these ranks on their devices.
    pub(super) fn run(&self, devices: &[Device], wanted: Wanted<'_>, doing: &dyn Fn(usize, &str)) -> Trial {
        let ranks = wanted.ranks;
        let chosen: Vec<Device> = ranks.iter().filter_map(|&rank| devices.get(rank).copied()).collect();
        let mut trial = Trial::default();
        let number = |rank: usize| ranks.get(rank).copied().unwrap_or(rank);
        let mut listen = |rank: Option<usize>, event: &Event| {
            let Some(rank) = rank.map(number) else {
                // The supervisor itself only warns.
                trial.warnings.extend(match event {
                    Event::Warning { message } => Some(message.clone()),
                    _ => None,
                });
                return;
            };
            match event {
                Event::Phase { doing: what, .. } => doing(rank, what),
                Event::Measured { measure, value } => {
                    trial.measured.entry(rank).or_default().push((*measure, *value));
                }
                &Event::Copied { from, to, by_host, rate, wrong } => {
                    trial.copies.push(Copy { from: number(from), to: number(to), by_host, rate, wrong });
                }
                Event::Warning { message } => trial.warnings.push(format!("rank {rank}: {message}")),
                _ => {}
            }
        };
        trial.failure = self.start(chosen, &wanted, &mut listen).err().map(|error| renumber(error, ranks));
        trial
    }

    fn start(
        &self,
        devices: Vec<Device>,
        wanted: &Wanted<'_>,
        listen: &mut dyn FnMut(Option<usize>, &Event),
    ) -> Result<(), LaunchError> {
        let folder = tempfile::Builder::new()
            .prefix("yolo-deep-")
            .tempdir()
            .map_err(|source| LaunchError::Folder { source })?;
        let mut connection = self.connection.clone();
        if wanted.without_p2p {
            connection.variables.insert(NCCL_P2P_DISABLE.to_owned(), "1".to_owned());
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let plan = plan_deep_check(wanted.task.clone(), devices, connection, cores, folder.path().to_owned());
        let file = plan.write()?;
        launch::run_within(wanted.limit, &plan, &file, &self.programs, listen).map(|_| ())
    }
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

//! The task and the plan of `yolo bench`: a training run, planned as `yolo train` plans it, and what
//! to measure of it. One rank, one device. `yolo train --workers auto` measures a part of it before it trains.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::train::{TrainTask, plan_train, positive};
use super::{PlanContext, Planning, Ranks, RunPlan, Task};
use crate::device;
use crate::error::PlanError;
use crate::options::{BenchOptions, Workers};

/// Seconds per measurement: enough for several steps of a large model on a CPU.
const SECONDS: usize = 8;
/// The same before a training run, which should start soon.
const SECONDS_BEFORE_TRAINING: usize = 2;
/// A longer measurement is a typo.
const MAX_SECONDS: usize = 3600;

/// A benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchTask {
    /// The training run whose speed is measured.
    pub training: TrainTask,
    /// What is measured, in this order.
    pub parts: Vec<BenchPart>,
    /// Seconds per measurement.
    pub seconds: usize,
    /// Parts of a measurement that all ranks make together and repeat, for a row of a table. 0 measures
    /// one rank, with the phases of its steps.
    #[serde(default)]
    pub rounds: usize,
    /// Whether loaders with more and more threads are measured only until one suffices.
    #[serde(default)]
    pub choose_workers: bool,
}

/// What a benchmark can measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BenchPart {
    /// Training on the images of the data set.
    Training,
    /// Training on one batch that stays on the device.
    Synthetic,
    /// The training loader alone, with several numbers of threads.
    Loader,
    /// Validation.
    Validation,
}

impl BenchTask {
    /// Whether this is measured.
    pub fn measures(&self, part: BenchPart) -> bool {
        self.parts.contains(&part)
    }
}

/// Plans a benchmark.
///
/// # Errors
/// The first mistake in the options, or in a file that they name.
pub fn plan_bench(options: &BenchOptions, context: &PlanContext) -> Result<Planning, PlanError> {
    let seconds = seconds(options)?;
    let choose_workers = options.workers == Some(Workers::Auto);
    device::choose_one(options.device.as_deref(), "yolo bench", &context.inventory)?;
    let mut planning = plan_train(&options.as_train(), context)?;
    if let Planning::Ready(planned) = &mut planning
        && let Task::Train(training) = &planned.plan.task
    {
        let training = TrainTask::clone(training);
        let parts = parts(options, choose_workers);
        planned.plan.task =
            Task::Bench(Box::new(BenchTask { training, parts, seconds, rounds: 0, choose_workers }));
    }
    Ok(planning)
}

/// Plans the measurement of how many loader threads the ranks of a training run on this machine need, in the folder
/// `run_dir`; `None` if `run` is no training run. It is made by the rank with the most images per step alone: each
/// rank has its own share of the cores, and no exchange with the others makes its network faster.
pub fn plan_loader_threads(run: &RunPlan, run_dir: PathBuf) -> Option<RunPlan> {
    let task = run.task.train()?;
    let ranks = &run.ranks;
    let shares = task.shares(ranks.devices.len());
    let (rank, share) = shares.into_iter().enumerate().rev().max_by_key(|(_, share)| *share)?;
    let training = TrainTask {
        // The weights of the first start may be gone.
        weights: task.resume.clone().or_else(|| task.weights.clone()),
        resume: None,
        batch: share,
        batch_split: Vec::new(),
        nominal_batch: (task.nominal_batch * share / task.batch).max(1),
        balance: None,
        sync_bn: false,
        // Four images in one have as many pixels, and are loaded at the same cost or less.
        quad: false,
        ..task.clone()
    };
    let alone = Ranks {
        devices: vec![*ranks.devices.get(rank)?],
        further_devices: ranks.further_devices.clone(),
        device_memory: ranks.device_memory.clone(),
        first: 0,
        first_here: 0,
        here: None,
        world_size: 1,
        backend: None,
        nccl: None,
        variables: BTreeMap::new(),
        threads: ranks.threads,
        cpus: ranks.cpus.get(rank).cloned().into_iter().collect(),
    };
    let (parts, seconds) = (vec![BenchPart::Synthetic, BenchPart::Loader], SECONDS_BEFORE_TRAINING);
    let task = BenchTask { training, parts, seconds, rounds: 0, choose_workers: true };
    Some(RunPlan::new(alone, run_dir, Task::Bench(Box::new(task))))
}

/// `--seconds` or its default.
pub(super) fn seconds(options: &BenchOptions) -> Result<usize, PlanError> {
    positive("--seconds", options.seconds.unwrap_or(SECONDS), MAX_SECONDS)
}

/// The measurements that the options name, or all. The choice of loader threads needs two of them, the
/// speeds of the network and of the loader.
fn parts(options: &BenchOptions, choose_workers: bool) -> Vec<BenchPart> {
    let all = [
        (options.training, BenchPart::Training),
        (options.synthetic || choose_workers, BenchPart::Synthetic),
        (options.loader || choose_workers, BenchPart::Loader),
        (options.validation, BenchPart::Validation),
    ];
    let none_named = all.iter().all(|(named, _)| !named);
    all.into_iter().filter(|(named, _)| *named || none_named).map(|(_, part)| part).collect()
}

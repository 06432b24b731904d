//! The task and the plan of `yolo bench`: a training run, planned as `yolo train` plans it, and what
//! to measure of it. One rank, one device. What `yolo train` measures before it trains is planned in
//! `before_training.rs`.

use serde::{Deserialize, Serialize};

use super::train::{TrainTask, plan_train};
use super::train_checks::positive;
use super::{PlanContext, Planning, Task};
use crate::error::PlanError;
use crate::options::{BenchOptions, LoaderThreads, Workers};
use crate::{batch, device};

/// Seconds per measurement: enough for several steps of a large model on a CPU.
const SECONDS: usize = 8;
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
    /// Whether the loader is measured with the threads of training only.
    #[serde(default)]
    pub most_workers: bool,
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
    /// The memory of training steps with several batches, of nothing but random pixels.
    Memory,
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
    let most_workers = options.loader == Some(LoaderThreads::Most);
    if choose_workers && most_workers {
        return Err(PlanError::usage(
            "--loader most contradicts --workers auto, which measures more and more threads",
        ));
    }
    if let Some(images) = options.batch_size {
        batch::check(images, 1)?;
    }
    device::choose_one(options.device.as_deref(), "yolo bench", &context.inventory)?;
    let mut planning = plan_train(&options.as_train(), context)?;
    if let Planning::Ready(planned) = &mut planning
        && let Task::Train(training) = &planned.plan.task
    {
        let training = TrainTask::clone(training);
        let parts = parts(options, choose_workers);
        let task = BenchTask { training, parts, seconds, rounds: 0, choose_workers, most_workers };
        planned.plan.task = Task::Bench(Box::new(task));
    }
    Ok(planning)
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
        (options.loader.is_some() || choose_workers, BenchPart::Loader),
        (options.validation, BenchPart::Validation),
    ];
    let none_named = all.iter().all(|(named, _)| !named);
    all.into_iter().filter(|(named, _)| *named || none_named).map(|(_, part)| part).collect()
}

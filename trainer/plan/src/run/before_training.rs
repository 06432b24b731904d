//! What `yolo train` measures before it starts its ranks: the loader threads that they need (`--workers auto`), and the
//! largest batch that fits into the memory of their GPUs (`--batch -1`). One rank measures alone, as a short benchmark
//! of the run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::train::TrainTask;
use super::{BenchPart, BenchTask, Ranks, RunPlan, Task};
use crate::auto_batch::SIZES;
use crate::device::{Device, Inventory};
use crate::options::Parallel;

/// Seconds per measurement: the run should start soon.
const SECONDS: usize = 2;

/// Plans the measurement of how many loader threads the ranks of a training run on this machine need, in the folder
/// `run_dir`; `None` if `run` is no training run. It is made by the rank with the most images per step alone: each
/// rank has its own share of the cores, and no exchange with the others makes its network faster.
pub fn plan_loader_threads(run: &RunPlan, run_dir: PathBuf) -> Option<RunPlan> {
    let task = run.task.train()?;
    let ranks = &run.ranks;
    let shares = task.shares(ranks.devices.len());
    let (rank, share) = shares.into_iter().enumerate().rev().max_by_key(|(_, share)| *share)?;
    let alone = Ranks {
        further_devices: ranks.further_devices.clone(),
        device_memory: ranks.device_memory.clone(),
        ..alone(ranks, *ranks.devices.get(rank)?)
    };
    let alone = Ranks { cpus: ranks.cpus.get(rank).cloned().into_iter().collect(), ..alone };
    let (parts, seconds) = (vec![BenchPart::Synthetic, BenchPart::Loader], SECONDS);
    let task = BenchTask {
        training: of_one_rank(task, share),
        parts,
        seconds,
        rounds: 0,
        choose_workers: true,
        most_workers: false,
    };
    Some(RunPlan::new(alone, run_dir, Task::Bench(Box::new(task))))
}

/// The measurement of the memory that batches need.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchMeasurement {
    /// Its plan.
    pub plan: RunPlan,
    /// The GPU on which it is made.
    pub device: Device,
    /// How many processes or replicas of the run share this GPU.
    pub sharing: usize,
    /// Among how many ranks or replicas the run divides its batch.
    pub parts: usize,
    /// What the images of each must be a multiple of.
    pub unit: usize,
}

/// Plans the measurement for `--batch -1` in the folder `run_dir`: on the GPU of the run that has the least free memory
/// for each of its ranks, because all ranks get the same number of images. `None` if `run` uses no GPU, or is no
/// training run.
pub fn plan_batch_memory(run: &RunPlan, inventory: &Inventory, run_dir: PathBuf) -> Option<BatchMeasurement> {
    let task = run.task.train()?;
    let devices = run.ranks.all_devices();
    let uses = |device: Device| devices.iter().filter(|other| **other == device).count();
    let gpus = devices.iter().copied().filter(|device| *device != Device::Cpu);
    // One whose memory the driver does not report is not known to have less than another.
    let free = |device: &Device| inventory.free_memory(*device).unwrap_or(u64::MAX) / uses(*device) as u64;
    let device = gpus.min_by_key(free)?;
    let training =
        TrainTask { parallel: Parallel::Ddp, ..of_one_rank(task, SIZES.into_iter().max().unwrap_or(1)) };
    let (parts, seconds) = (vec![BenchPart::Memory], SECONDS);
    let bench = BenchTask { training, parts, seconds, rounds: 0, choose_workers: false, most_workers: false };
    Some(BatchMeasurement {
        plan: RunPlan::new(alone(&run.ranks, device), run_dir, Task::Bench(Box::new(bench))),
        device,
        sharing: uses(device),
        parts: devices.len(),
        unit: task.images_as_one(),
    })
}

/// A single rank on this device.
fn alone(ranks: &Ranks, device: Device) -> Ranks {
    Ranks {
        devices: vec![device],
        further_devices: Vec::new(),
        device_memory: Vec::new(),
        first: 0,
        first_here: 0,
        here: None,
        world_size: 1,
        backend: None,
        nccl: None,
        variables: BTreeMap::new(),
        threads: ranks.threads,
        cpus: Vec::new(),
        page_locked: ranks.page_locked,
    }
}

/// What one rank trains by itself, with `share` images per step.
fn of_one_rank(task: &TrainTask, share: usize) -> TrainTask {
    TrainTask {
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
    }
}

//! The task and the plan of `yolo doctor --deep`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Ranks, RunPlan, Task};
use crate::backend::Connection;
use crate::device::{Device, Inventory};

/// The test of `yolo doctor --deep`. Each measurement takes about a second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeepCheckTask {
    /// What is tested.
    pub part: DeepPart,
    /// Images to read and decode; empty without `--data`.
    pub images: Vec<PathBuf>,
    /// Bytes of page-locked memory that the loader of a rank wants.
    pub pinned: u64,
    /// Milliseconds for which a GPU computes without a pause, so that its temperature and clocks show.
    pub load: u64,
}

/// What is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeepPart {
    /// Each device alone, reading and decoding, and sums over all ranks.
    Everything,
    /// Sums over the ranks only: for pairs of ranks.
    Links,
    /// Copies between the devices, in one process that has them all.
    Copies,
}

/// Plans a test of devices, which share `cores` as those of any run do. Copies are tested by one process.
pub fn plan_deep_check(
    task: DeepCheckTask,
    devices: Vec<Device>,
    connection: Connection,
    cores: usize,
    run_dir: PathBuf,
) -> RunPlan {
    let inventory = Inventory { cores, ..Inventory::default() };
    let ranks = match task.part {
        DeepPart::Copies => Ranks::in_one_process(&devices, &inventory),
        DeepPart::Everything | DeepPart::Links => Ranks::new(devices, connection, None, &inventory),
    };
    RunPlan::new(ranks, run_dir, Task::DeepCheck(task))
}

//! The task and the plan of `yolo doctor --deep`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Ranks, RunPlan, Task};
use crate::backend::Connection;
use crate::device::{Device, Inventory};

/// The test of `yolo doctor --deep`. Each measurement takes about a second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeepCheckTask {
    /// Only the all-reduce: for pairs of ranks, after all ranks together have failed.
    pub links_only: bool,
    /// Images to read and decode; empty without `--data`.
    pub images: Vec<PathBuf>,
}

/// Plans a test of devices, which share `cores` as those of any run do.
pub fn plan_deep_check(
    task: DeepCheckTask,
    devices: Vec<Device>,
    connection: Connection,
    cores: usize,
    run_dir: PathBuf,
) -> RunPlan {
    let inventory = Inventory { cores, ..Inventory::default() };
    RunPlan::new(Ranks::new(devices, connection, None, &inventory), run_dir, Task::DeepCheck(task))
}

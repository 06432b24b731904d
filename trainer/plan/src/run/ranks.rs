//! The ranks of a run, one per device, and how they share cores and batch.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::backend::{Backend, Connection};
use crate::device::Device;

/// Loader threads per rank, if the cores and the batch allow.
const WORKERS: usize = 8;

/// The ranks of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranks {
    /// The device of every local rank, in order of LOCAL_RANK.
    pub devices: Vec<Device>,
    /// Ranks over all machines.
    pub world_size: usize,
    /// How ranks communicate; `None` for a single rank.
    pub backend: Option<Backend>,
    /// The libnccl to use instead of the one of libtorch.
    #[serde(default)]
    pub nccl: Option<PathBuf>,
    /// Environment variables that every rank gets unless the user set them.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// CPU threads per rank.
    pub threads: usize,
}

impl Ranks {
    /// One rank per device, each with an equal share of the cores.
    pub(super) fn new(devices: Vec<Device>, connection: Connection, cores: usize) -> Self {
        let world_size = devices.len();
        let Connection { backend, nccl, variables, notes: _ } = connection;
        Self { backend, nccl, variables, threads: (cores / world_size.max(1)).max(1), devices, world_size }
    }

    /// One rank's share of a batch, which is always a multiple of the number of ranks.
    pub fn share(&self, batch: usize) -> usize {
        batch / self.world_size
    }

    /// Loader threads per rank: `--workers`, but no more than the rank's share of the cores and of the
    /// batch.
    pub(super) fn workers(&self, option: Option<usize>, batch: usize, cores: usize) -> usize {
        option.unwrap_or(WORKERS).min(cores / self.world_size).min(self.share(batch)).max(1)
    }
}

//! What `--deep` saw, as data: what each rank measured, copies between devices, sums over pairs, how the cards
//! behaved under load, and the facts of the host that say what to expect. Conclusions are drawn from this alone, so
//! recorded ones test them. `--json` prints it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use yolo_checks::GpuStrain;
use yolo_plan::backend::Backend;
use yolo_plan::event::Measure;

/// Everything that was seen.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Observed {
    /// The ranks, by their number.
    pub(super) ranks: Vec<Rank>,
    /// How the ranks communicate; absent for a single rank.
    pub(super) backend: Option<Backend>,
    /// Why the ranks did not finish together.
    pub(super) failure: Option<Failure>,
    /// The same ranks again with NCCL_P2P_DISABLE=1, after they have failed together.
    pub(super) again: Option<Again>,
    /// Copies between devices.
    pub(super) copies: Vec<Copy>,
    /// Why the copies did not finish.
    pub(super) copies_failure: Option<Failure>,
    /// Sums over pairs of ranks.
    pub(super) pairs: Vec<Pair>,
    /// What the ranks warned of.
    pub(super) warnings: Vec<String>,
    pub(super) host: HostFacts,
    /// The run that is planned; absent without options after `--`.
    pub(super) planned: Option<Planned>,
}

/// One rank.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Rank {
    /// Such as `CUDA device 3` or `CPU`.
    pub(super) device: String,
    /// The name of the card.
    pub(super) card: Option<String>,
    /// The PCI address of the card, which is the same inside a container and outside.
    pub(super) address: Option<String>,
    pub(super) measured: BTreeMap<String, f64>,
    /// The card under load.
    pub(super) strain: Option<GpuStrain>,
}

/// Why ranks did not finish.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Failure {
    /// The rank and what it was doing.
    pub(super) what: String,
    #[serde(default)]
    pub(super) hint: Option<String>,
}

/// A copy between devices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Copy {
    /// The rank whose device has the bytes.
    pub(super) from: usize,
    /// The rank whose device gets them.
    pub(super) to: usize,
    /// Whether they go by the host's memory.
    pub(super) by_host: bool,
    /// GB/s.
    pub(super) rate: f64,
    /// How many bytes arrived wrong.
    pub(super) wrong: u64,
}

/// A sum over two ranks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Pair {
    pub(super) ranks: (usize, usize),
    /// Whether there was time for it.
    pub(super) tried: bool,
    pub(super) failure: Option<Failure>,
    /// The same pair with NCCL_P2P_DISABLE=1, after it has failed.
    pub(super) again: Option<Again>,
    /// GB/s that each rank sends in a large sum.
    pub(super) rate: Option<f64>,
}

/// A second attempt without direct copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Again {
    Works,
    Fails,
}

/// Who administers the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Administrator {
    /// The user.
    #[default]
    User,
    /// The user, in Windows: this is WSL.
    Windows,
    /// Whoever has the host of this container.
    Host,
    /// The administrator of the node of a batch job, of this system.
    Job(String),
    /// The administrator of a machine on which the user has no rights.
    Machine,
    /// The administrator of the cluster, for the node of a pod.
    Node,
    /// Only a service of this name, which rents machines or runs notebooks.
    Service(String),
}

/// What the host says.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct HostFacts {
    pub(super) cores: usize,
    pub(super) is_wsl: bool,
    /// Who can reset a card and change its settings.
    pub(super) administrator: Administrator,
    /// How two devices are connected, such as `PIX` or `SYS`, by the numbers of the ranks: `0,1`.
    pub(super) links: BTreeMap<String, String>,
    /// The file system of the images, such as `ext4` or `nfs4`.
    pub(super) file_system: Option<String>,
    /// Where it is mounted.
    pub(super) mount: Option<String>,
    /// MiB of page-locked memory that the loader of a rank wants.
    pub(super) pinned_wanted: f64,
}

/// The run that is planned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Planned {
    /// Such as `yolov5s`.
    pub(super) model: String,
    /// Billions of operations for an image of this size, forward.
    pub(super) gflops: f64,
    pub(super) parameters: u64,
    pub(super) image_size: usize,
    /// Images per step over all ranks.
    pub(super) batch: usize,
    /// Of these, those of the rank with the fewest, if the shares are not equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) smallest_share: Option<usize>,
    /// Loader threads per rank.
    pub(super) workers: usize,
    /// Images that are decoded for one that is trained: a mosaic has four.
    pub(super) decoded_per_image: f64,
    /// Whether all decoded images stay in memory.
    pub(super) cached: bool,
    /// Whether it trains in half precision.
    pub(super) half: bool,
}

impl Rank {
    /// What was measured, if it was.
    pub(super) fn value(&self, measure: Measure) -> Option<f64> {
        self.measured.get(&key(measure)).copied()
    }
}

/// The name of a measurement in reports.
pub(super) fn key(measure: Measure) -> String {
    serde_json::to_value(measure).ok().and_then(|name| Some(name.as_str()?.to_owned())).unwrap_or_default()
}

impl Observed {
    /// A rank with its device, for messages.
    pub(super) fn name_of(&self, rank: usize) -> String {
        format!("rank {rank} ({})", self.ranks.get(rank).map_or("no device", |rank| rank.device.as_str()))
    }

    /// Whether a rank has a GPU.
    pub(super) fn has_gpu(&self, rank: usize) -> bool {
        self.ranks.get(rank).is_some_and(|rank| rank.device != "CPU")
    }
}

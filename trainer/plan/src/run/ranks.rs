//! The ranks of a run and how they share cores and batch: one per device, or a single one with all devices
//! (`--parallel dp` and `model`). A plan may hold only a part of the ranks: the others are on other machines, or
//! another launcher starts each rank by itself.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::backend::{Backend, Connection, Reach};
use crate::device::{Device, Inventory};

/// Which ranks of a run a plan holds, if it does not hold all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The number of the plan's first rank among all ranks.
    pub first: usize,
    /// The number of the plan's first rank among those of this machine.
    pub first_here: usize,
    /// Ranks on this machine, which share its cores. Other plans may hold some of them.
    pub here: usize,
    /// Ranks over all machines.
    pub world_size: usize,
}

impl Part {
    /// All ranks of a run on this machine.
    fn whole(ranks: usize) -> Self {
        Self { first: 0, first_here: 0, here: ranks, world_size: ranks }
    }

    /// How far apart the ranks are, if the plan holds `ranks` of them.
    pub(super) fn reach(self, ranks: usize) -> Reach {
        match self {
            Self { here, world_size, .. } if here < world_size => Reach::Machines,
            Self { world_size, .. } if ranks < world_size => Reach::Machine,
            _ => Reach::Plan,
        }
    }
}

/// The ranks of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranks {
    /// The device of every rank that this plan holds, in the order of their numbers; of a rank with several
    /// devices, the first.
    pub devices: Vec<Device>,
    /// The further devices of the only rank, if it has several.
    #[serde(default)]
    pub further_devices: Vec<Device>,
    /// Memory in bytes that can be used on each device of a rank with several; empty if it is not known.
    #[serde(default)]
    pub device_memory: Vec<u64>,
    /// The number of the first of them among all ranks.
    #[serde(default)]
    pub first: usize,
    /// The number of the first of them among the ranks of this machine.
    #[serde(default)]
    pub first_here: usize,
    /// Ranks on this machine; `None` if the plan holds all of them.
    #[serde(default)]
    pub here: Option<usize>,
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
    /// The CPUs of each local rank; empty if the system chooses.
    #[serde(default)]
    pub cpus: Vec<String>,
    /// Bytes of memory that each rank may page-lock for copies to its GPU; `None` in plans of older versions, for no
    /// limit.
    #[serde(default)]
    pub page_locked: Option<u64>,
}

/// Page-locked memory of all ranks of a machine whose system has no known limit, in bytes: several batches of 500 images
/// of 640 px. It is lost for other programs.
const PAGE_LOCKED: u64 = 4 << 30;

/// What each of `here` ranks may page-lock. Where the system has little, half is left to the driver, to libtorch and to
/// other programs.
pub(super) fn page_locked(inventory: &Inventory, here: usize) -> Option<u64> {
    Some(inventory.page_lockable.map_or(PAGE_LOCKED, |bytes| bytes / 2) / here.max(1) as u64)
}

impl Ranks {
    /// One rank per device, each with an equal share of the machine's cores. `part` is which ranks of the run
    /// they are, if they are not all.
    pub(super) fn new(
        devices: Vec<Device>,
        connection: Connection,
        part: Option<Part>,
        inventory: &Inventory,
    ) -> Self {
        let Part { first, first_here, here, world_size } = part.unwrap_or_else(|| Part::whole(devices.len()));
        let Connection { backend, nccl, variables, notes: _ } = connection;
        let threads = (inventory.cores / here.max(1)).max(1);
        let page_locked = page_locked(inventory, here);
        let here = (here != devices.len()).then_some(here);
        Self {
            devices,
            further_devices: Vec::new(),
            device_memory: Vec::new(),
            first,
            first_here,
            here,
            world_size,
            backend,
            nccl,
            variables,
            threads,
            cpus: Vec::new(),
            page_locked,
        }
    }

    /// A single rank that uses all these devices and all cores. Those that are named several times share
    /// their memory.
    pub(super) fn in_one_process(devices: &[Device], inventory: &Inventory) -> Self {
        let uses = |device: &Device| devices.iter().filter(|other| *other == device).count() as u64;
        let memory = |device: &Device| Some(inventory.free_memory(*device)? / uses(device));
        let device_memory: Option<Vec<u64>> = devices.iter().map(memory).collect();
        let (first, further) = devices.split_at(devices.len().min(1));
        Self {
            further_devices: further.to_vec(),
            device_memory: device_memory.unwrap_or_default(),
            ..Self::new(first.to_vec(), Connection::default(), None, inventory)
        }
    }

    /// The devices of the plan's rank with this index; the first is its main one.
    pub fn devices_of(&self, index: usize) -> Vec<Device> {
        self.devices.get(index).into_iter().chain(&self.further_devices).copied().collect()
    }

    /// The devices of all ranks of the plan.
    pub fn all_devices(&self) -> Vec<Device> {
        self.devices.iter().chain(&self.further_devices).copied().collect()
    }

    /// Whether the plan holds all ranks of the run.
    pub fn are_all(&self) -> bool {
        self.devices.len() == self.world_size
    }

    /// Ranks on this machine.
    pub fn on_this_machine(&self) -> usize {
        self.here.unwrap_or(self.devices.len())
    }

    /// One rank's share of a batch that is divided equally. `TrainTask::shares` has the unequal shares of
    /// `--batch-split`.
    pub fn share(&self, batch: usize) -> usize {
        batch / self.world_size
    }

    /// Loader threads per rank: `--workers` or as many as possible, but no more than the rank's share of the cores, and than the
    /// images that it loads per step, which are `share` in the rank with the most. With none, the thread that trains
    /// loads, which only the user chooses.
    pub fn workers(&self, option: Option<usize>, share: usize, cores: usize) -> usize {
        match option {
            Some(0) => 0,
            _ => option.unwrap_or(share).min(cores / self.on_this_machine()).min(share).max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Gpu;

    fn part(devices: usize, part: Option<Part>) -> Ranks {
        let inventory = Inventory { cores: 16, ..Inventory::default() };
        Ranks::new(vec![Device::Cpu; devices], Connection::default(), part, &inventory)
    }

    #[test]
    fn ranks_share_the_cores_of_their_machine_and_the_batch_of_all() {
        let whole = part(2, None);
        assert!(whole.are_all());
        assert_eq!((whole.threads, whole.share(32), whole.workers(None, 16, 16)), (8, 16, 8));
        assert_eq!((whole.workers(Some(0), 16, 16), whole.workers(None, 16, 1)), (0, 1));
        assert_eq!(
            (whole.workers(None, 16, 64), whole.workers(None, 64, 64), whole.workers(Some(4), 64, 64)),
            (16, 32, 4)
        );
        // The second of two machines with four ranks each.
        let machine = Part { first: 4, first_here: 0, here: 4, world_size: 8 };
        let half = part(4, Some(machine));
        assert!(!half.are_all());
        assert_eq!((half.first, half.on_this_machine(), half.here), (4, 4, None));
        assert_eq!((half.threads, half.share(32), half.workers(None, 16, 16)), (4, 4, 4));
        // One of these ranks, in a plan of its own.
        let single = part(1, Some(Part { first: 6, first_here: 2, ..machine }));
        assert_eq!((single.threads, single.share(32), single.on_this_machine()), (4, 4, 4));
    }

    #[test]
    fn a_single_rank_can_have_several_devices() {
        let gpu = |index: usize, memory: u64, free: u64| Gpu { index, memory, free, ..Gpu::default() };
        let inventory = |free| Inventory {
            cores: 16,
            gpus: vec![gpu(0, 24, 20), gpu(1, 8, free)],
            ..Inventory::default()
        };
        let gpus = [0, 1, 0].map(Device::Cuda);
        let one = Ranks::in_one_process(&gpus, &inventory(6));
        assert_eq!((one.world_size, one.on_this_machine(), one.threads, one.are_all()), (1, 1, 16, true));
        assert_eq!((one.devices_of(0), one.all_devices()), (gpus.to_vec(), gpus.to_vec()));
        assert_eq!(one.device_memory, [10, 6, 10], "two parts share GPU 0");
        assert_eq!(Ranks::in_one_process(&gpus, &inventory(0)).device_memory, [10, 8, 10]);
        assert!(Ranks::in_one_process(&[Device::Cpu; 2], &inventory(6)).device_memory.is_empty());
        assert_eq!(part(2, None).devices_of(1), [Device::Cpu]);
    }

    #[test]
    fn the_ranks_of_a_machine_share_what_can_be_page_locked() {
        let ranks = |page_lockable, ranks: usize| {
            let inventory = Inventory { page_lockable, ..Inventory::default() };
            Ranks::new(vec![Device::Cuda(0); ranks], Connection::default(), None, &inventory).page_locked
        };
        assert_eq!(ranks(None, 1), Some(4 << 30));
        assert_eq!(ranks(None, 8), Some(512 << 20));
        // WSL has about 1 GB.
        assert_eq!((ranks(Some(1 << 30), 1), ranks(Some(1 << 30), 2)), (Some(512 << 20), Some(256 << 20)));
        // The second of two machines, whose ranks each have a plan of their own.
        let part = Part { first: 6, first_here: 2, here: 4, world_size: 8 };
        assert_eq!(self::part(1, Some(part)).page_locked, Some(1 << 30));
    }

    #[test]
    fn how_far_apart_ranks_are_follows_from_their_numbers() {
        let part = Part { first: 0, first_here: 0, here: 2, world_size: 2 };
        assert_eq!(part.reach(2), Reach::Plan);
        assert_eq!(part.reach(1), Reach::Machine);
        assert_eq!(Part { world_size: 4, ..part }.reach(2), Reach::Machines);
        assert_eq!(Part { world_size: 4, ..part }.reach(1), Reach::Machines);
    }

    #[test]
    fn the_plan_of_an_older_version_holds_all_ranks() {
        let older = serde_json::json!({
            "devices": [Device::Cpu, Device::Cpu], "world_size": 2, "backend": "gloo", "threads": 3,
        });
        let ranks: Ranks = serde_json::from_value(older).unwrap();
        assert!(ranks.are_all());
        assert_eq!((ranks.first, ranks.on_this_machine()), (0, 2));
    }
}

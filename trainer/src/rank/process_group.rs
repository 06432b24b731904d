//! How the ranks of a run become one process group: they meet at a store, join over gloo, and add the
//! backend that the plan names for CUDA tensors. A new backend gets an arm in [`join`].

use std::path::PathBuf;
use std::time::Duration;

use tch_distributed::{Bind, GlooOptions, NcclPlugin, NcclVersion, ProcessGroup, Store};
use yolo_plan::backend::{Backend, NCCL_PLUGIN};
use yolo_plan::device::shared;
use yolo_plan::run::Ranks;

use super::meeting::Meeting;
use super::nccl_interface;
use super::rendezvous::Rendezvous;
use crate::error::TrainError;

/// The first NCCL that lets ranks share a GPU.
const SHARES_GPUS: NcclVersion = NcclVersion { major: 2, minor: 30, patch: 0 };

/// How long a rank waits for others.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Until all have started.
    pub rendezvous: Duration,
    /// In each collective.
    pub collective: Duration,
}

impl Timeouts {
    /// For a run: the others wait in a collective while rank 0 scans, saves and draws.
    pub const RUN: Self =
        Self { rendezvous: Duration::from_secs(120), collective: Duration::from_secs(10_800) };
    /// For `yolo doctor --deep`, which must find a rank that does not answer.
    pub const DEEP_CHECK: Self =
        Self { rendezvous: Duration::from_secs(20), collective: Duration::from_secs(10) };
}

/// A group, and the NCCL that it uses, if it does.
#[derive(Debug)]
pub struct Joined {
    /// The ranks of the run.
    pub group: ProcessGroup,
    /// The version of NCCL.
    pub nccl: Option<NcclVersion>,
}

/// Joins the other ranks of the plan as number `rank`, with tensors on `device`. CPU tensors go over gloo
/// whatever the backend: flags, barriers and messages do not depend on a GPU.
///
/// # Errors
/// When the plan's backend is not available, the environment does not say where to meet, or a rank
/// does not join in time.
pub fn join(
    rank: usize,
    ranks: &Ranks,
    device: tch::Device,
    timeouts: Timeouts,
) -> Result<Joined, TrainError> {
    connect(ranks, device, timeouts, || {
        let rendezvous = Rendezvous::from_environment()?;
        let store = rendezvous.store(rank, timeouts.rendezvous)?;
        gloo(&store, rank, ranks, None, timeouts)
    })
}

/// As [`join`], for ranks that have met already.
///
/// # Errors
/// As [`join`].
pub(super) fn join_at(
    meeting: &Meeting,
    rank: usize,
    ranks: &Ranks,
    device: tch::Device,
    timeouts: Timeouts,
) -> Result<Joined, TrainError> {
    connect(ranks, device, timeouts, || gloo(&*meeting.store, rank, ranks, Some(&meeting.address), timeouts))
}

/// Adds the backend of the plan to the group that `gloo` makes.
fn connect(
    ranks: &Ranks,
    device: tch::Device,
    timeouts: Timeouts,
    gloo: impl FnOnce() -> Result<ProcessGroup, TrainError>,
) -> Result<Joined, TrainError> {
    match ranks.backend {
        Some(Backend::Gloo) => Ok(Joined { group: gloo()?, nccl: None }),
        Some(Backend::Nccl) => {
            // What this rank lacks is an error before it waits for the others.
            let (plugin, device) = nccl_plugin(ranks, device)?;
            let group = gloo()?;
            group
                .use_nccl(&plugin, device, timeouts.collective)
                .map_err(|error| nccl_interface::explain(ranks, error.into()))?;
            Ok(Joined { group, nccl: Some(plugin.loaded()) })
        }
        None => Err(TrainError::new(format!("the plan has {} ranks and names no backend", ranks.world_size))),
    }
}

/// `address` is where ranks on other machines reach this one.
///
/// Invariant: ranks of one machine listen on loopback only, because c10d has no authentication.
fn gloo(
    store: &(impl Store + ?Sized),
    rank: usize,
    ranks: &Ranks,
    address: Option<&String>,
    timeouts: Timeouts,
) -> Result<ProcessGroup, TrainError> {
    let elsewhere = address.filter(|_| ranks.on_this_machine() < ranks.world_size);
    let options = GlooOptions {
        bind: elsewhere.map_or(Bind::Loopback, |address| Bind::Address(address.clone())),
        timeout: timeouts.collective,
        // All ranks run the same program on the same plan, and a check costs a message per step.
        check_calls: false,
        ..GlooOptions::default()
    };
    // The group holds the store by reference count, so the store may be dropped here.
    Ok(ProcessGroup::gloo(store, rank, ranks.world_size, &options)?)
}

/// The NCCL plugin and the number of this rank's device, if NCCL can connect these ranks.
fn nccl_plugin(ranks: &Ranks, device: tch::Device) -> Result<(NcclPlugin, usize), TrainError> {
    let tch::Device::Cuda(device) = device else {
        return Err(TrainError::new("the plan's backend is nccl, but this rank is on the CPU"));
    };
    let path = plugin_path()?;
    let plugin = NcclPlugin::open(&path).map_err(|error| {
        TrainError::new(format!("the NCCL plugin cannot be used: {error}"))
            .with_hint("run `yolo setup --nccl` again, or train with --backend gloo")
    })?;
    let loaded = plugin.loaded();
    match shared(&ranks.devices) {
        Some((index, count)) if loaded < SHARES_GPUS => Err(TrainError::new(format!(
            "{count} ranks share GPU {index}, which needs NCCL {SHARES_GPUS} or newer, but NCCL {loaded} is loaded"
        ))
        .with_hint("name a newer libnccl.so.2 with --nccl, or train with --backend gloo")),
        _ => Ok((plugin, device)),
    }
}

/// The plugin next to this program.
fn plugin_path() -> Result<PathBuf, TrainError> {
    let program = std::env::current_exe()
        .map_err(|error| TrainError::new(format!("cannot find the folder of this program: {error}")))?;
    let path = program.with_file_name(NCCL_PLUGIN);
    if path.is_file() {
        return Ok(path);
    }
    Err(TrainError::new(format!("the NCCL plugin is missing: there is no {}", path.display()))
        .with_hint("run `yolo setup --nccl`, or train with --backend gloo"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use yolo_plan::device::Device;

    use super::*;

    #[test]
    fn a_backend_that_is_not_there_is_refused_before_the_others_are_awaited() {
        let refusal = |backend, device| {
            let devices = vec![Device::Cuda(0), Device::Cuda(1)];
            let variables = BTreeMap::new();
            let ranks = Ranks {
                devices,
                further_devices: Vec::new(),
                device_memory: Vec::new(),
                first: 0,
                first_here: 0,
                here: None,
                world_size: 2,
                backend,
                nccl: None,
                variables,
                threads: 1,
                cpus: Vec::new(),
                page_locked: None,
            };
            let joined = join(0, &ranks, device, Timeouts::DEEP_CHECK);
            joined.err().map(|error| error.to_string()).unwrap_or_default()
        };
        let missing = refusal(Some(Backend::Nccl), tch::Device::Cuda(0));
        assert!(missing.starts_with("the NCCL plugin is missing: there is no "), "{missing}");
        assert!(refusal(Some(Backend::Nccl), tch::Device::Cpu).contains("this rank is on the CPU"));
        assert!(refusal(None, tch::Device::Cpu).contains("names no backend"));
    }
}

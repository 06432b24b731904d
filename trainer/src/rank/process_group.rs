//! How the ranks of a run become one process group: they meet at a store, then join over the backend
//! that the plan names. A new backend gets an arm in [`join`].

use std::time::Duration;

use tch_distributed::{Bind, GlooOptions, ProcessGroup};
use yolo_base::env::LOCAL_WORLD_SIZE;
use yolo_plan::backend::Backend;
use yolo_plan::run::Ranks;

use super::environment::number;
use super::rendezvous::Rendezvous;
use crate::error::TrainError;

/// How long a rank waits for others.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Until all have started.
    pub rendezvous: Duration,
    /// In each collective.
    pub collective: Duration,
}

impl Timeouts {
    /// For a run: the others wait in a collective while rank 0 validates (spec §11).
    pub const RUN: Self =
        Self { rendezvous: Duration::from_secs(120), collective: Duration::from_secs(10_800) };
    /// For `yolo doctor --deep`, which must find a rank that does not answer.
    pub const DEEP_CHECK: Self =
        Self { rendezvous: Duration::from_secs(20), collective: Duration::from_secs(10) };
}

/// Joins the other ranks of the plan as number `rank`.
///
/// # Errors
/// When the plan's backend is not available, the environment does not say where to meet, or a rank
/// does not join in time.
pub fn join(rank: usize, ranks: &Ranks, timeouts: Timeouts) -> Result<ProcessGroup, TrainError> {
    match ranks.backend {
        Some(Backend::Gloo) => gloo(rank, ranks.world_size, timeouts),
        Some(Backend::Nccl) => {
            Err(TrainError::new("the plan's backend is nccl, and this trainer has no NCCL plugin yet")
                .with_hint("train on one GPU, for example `--device 0`"))
        }
        None => Err(TrainError::new(format!("the plan has {} ranks and names no backend", ranks.world_size))),
    }
}

/// Invariant: ranks of one machine listen on loopback only, because c10d has no authentication.
fn gloo(rank: usize, world: usize, timeouts: Timeouts) -> Result<ProcessGroup, TrainError> {
    let rendezvous = Rendezvous::from_environment()?;
    let store = rendezvous.store(rank, timeouts.rendezvous)?;
    let local = number(LOCAL_WORLD_SIZE).is_none_or(|here| here == world);
    let options = GlooOptions {
        bind: if local { Bind::Loopback } else { Bind::Address(rendezvous.own_address()?) },
        timeout: timeouts.collective,
        ..GlooOptions::default()
    };
    // The group holds the store by reference count, so the store may be dropped here.
    Ok(ProcessGroup::gloo(&store, rank, world, &options)?)
}

#[cfg(test)]
mod tests {
    use yolo_plan::device::Device;

    use super::*;

    #[test]
    fn backends_that_the_trainer_lacks_are_refused() {
        let refusal = |backend| {
            let devices = vec![Device::Cuda(0), Device::Cuda(1)];
            let ranks = Ranks { devices, world_size: 2, backend, threads: 1 };
            join(0, &ranks, Timeouts::DEEP_CHECK).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert!(refusal(Some(Backend::Nccl)).contains("no NCCL plugin yet"));
        assert!(refusal(None).contains("names no backend"));
    }
}

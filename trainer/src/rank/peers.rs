//! How ranks find each other: at the socket that the supervisor bound and handed to rank 0, or at
//! MASTER_ADDR and MASTER_PORT, as torchrun gives them. Ranks of one machine listen on loopback
//! only, since c10d has no authentication.

use std::net::TcpListener;
use std::time::Duration;

use tch_distributed::{Bind, GlooOptions, ProcessGroup, TcpStore};
use yolo_plan::device::Backend;
use yolo_plan::event::RENDEZVOUS_FD;
use yolo_plan::run::Ranks;

use super::number;
use crate::error::TrainError;
use crate::reporter::inherited;

/// How long others are waited for.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Until all have started.
    pub rendezvous: Duration,
    /// In each collective.
    pub collective: Duration,
}

impl Patience {
    /// Of a run: rank 0 validates while the others wait (spec §11).
    pub const RUN: Self =
        Self { rendezvous: Duration::from_secs(120), collective: Duration::from_secs(10_800) };
    /// Of a probe, which is there to find who does not come.
    pub const PROBE: Self = Self { rendezvous: Duration::from_secs(20), collective: Duration::from_secs(10) };
}

/// Joins the other ranks of the plan as number `rank`. The store must outlive the group.
///
/// # Errors
/// When the plan's backend is not available, the environment does not say where to meet, or a rank
/// does not come.
pub fn meet(rank: usize, ranks: &Ranks, patience: Patience) -> Result<(TcpStore, ProcessGroup), TrainError> {
    match ranks.backend {
        Some(Backend::Gloo) => {}
        Some(Backend::Nccl) => {
            return Err(TrainError::new(
                "the plan's backend is nccl, and this trainer has no NCCL plugin yet",
            )
            .with_hint("train on one GPU, for example `--device 0`"));
        }
        None => {
            return Err(TrainError::new(format!(
                "the plan has {} ranks and names no backend",
                ranks.world_size
            )));
        }
    }
    let world = ranks.world_size;
    let (host, port) = (variable("MASTER_ADDR")?, variable("MASTER_PORT")?);
    let port: u16 = port
        .parse()
        .map_err(|_| TrainError::new(format!("MASTER_PORT is `{port}`, which is no port number")))?;
    let store = if rank == 0 {
        match inherited(RENDEZVOUS_FD) {
            Some(socket) => TcpStore::master(listener(socket), patience.rendezvous)?,
            None => TcpStore::bind(address(&host, port)?, patience.rendezvous)?,
        }
    } else {
        TcpStore::client(&host, port, patience.rendezvous)?
    };
    let local = number("LOCAL_WORLD_SIZE").is_none_or(|here| here == world);
    let options = GlooOptions {
        bind: if local { Bind::Loopback } else { Bind::Address(own_address(&host, port)?) },
        timeout: patience.collective,
        ..GlooOptions::default()
    };
    let group = ProcessGroup::gloo(&store, rank, world, &options)?;
    Ok((store, group))
}

#[cfg(unix)]
fn listener(socket: std::fs::File) -> TcpListener {
    TcpListener::from(std::os::fd::OwnedFd::from(socket))
}

#[cfg(not(unix))]
fn listener(_socket: std::fs::File) -> TcpListener {
    unreachable!("no descriptor is inherited on this system")
}

fn address(host: &str, port: u16) -> Result<std::net::SocketAddr, TrainError> {
    use std::net::ToSocketAddrs as _;
    (host, port).to_socket_addrs().ok().and_then(|mut found| found.next()).ok_or_else(|| {
        TrainError::new(format!("MASTER_ADDR `{host}` is no address that this machine can resolve"))
    })
}

/// The address of this machine on the way to the master: what its peers can reach.
fn own_address(host: &str, port: u16) -> Result<String, TrainError> {
    let unreachable = |error| TrainError::new(format!("no way leads to MASTER_ADDR {host}:{port}: {error}"));
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").map_err(unreachable)?;
    socket.connect((host, port)).map_err(unreachable)?;
    Ok(socket.local_addr().map_err(unreachable)?.ip().to_string())
}

fn variable(name: &str) -> Result<String, TrainError> {
    std::env::var(name).map_err(|_| {
        TrainError::new(format!("{name} is not set, so the ranks cannot meet"))
            .with_hint("start the ranks through `yolo train` or torchrun")
    })
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
            meet(0, &ranks, Patience::PROBE).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert!(refusal(Some(Backend::Nccl)).contains("no NCCL plugin yet"));
        assert!(refusal(None).contains("names no backend"));
    }
}

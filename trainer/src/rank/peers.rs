//! How ranks find each other: through a store that rank 0 serves, on the socket that the supervisor
//! bound for it or at `MASTER_ADDR` and `MASTER_PORT`. Ranks of one machine listen on loopback
//! only, because c10d has no authentication.

use std::net::TcpListener;
use std::time::Duration;

use tch_distributed::{Bind, GlooOptions, ProcessGroup, TcpStore};
use yolo_base::env::{LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT, YOLO_RENDEZVOUS_FD};
use yolo_plan::device::Backend;
use yolo_plan::run::Ranks;

use super::environment::{descriptor, number, text};
use crate::error::TrainError;

/// How long a rank waits for others.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Until all have started.
    pub rendezvous: Duration,
    /// In each collective.
    pub collective: Duration,
}

impl Patience {
    /// For a run: the others wait in a collective while rank 0 validates (spec §11).
    pub const RUN: Self =
        Self { rendezvous: Duration::from_secs(120), collective: Duration::from_secs(10_800) };
    /// For a probe, which is there to find a rank that does not answer.
    pub const PROBE: Self = Self { rendezvous: Duration::from_secs(20), collective: Duration::from_secs(10) };
}

/// Joins the other ranks of the plan as number `rank`.
///
/// # Errors
/// When the plan's backend is not available, the environment does not say where to meet, or a rank
/// does not come.
pub fn meet(rank: usize, ranks: &Ranks, patience: Patience) -> Result<ProcessGroup, TrainError> {
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
    let (host, port) = (text(MASTER_ADDR)?, text(MASTER_PORT)?);
    let port: u16 = port
        .parse()
        .map_err(|_| TrainError::new(format!("{MASTER_PORT} is `{port}`, which is not a port number")))?;
    let store = if rank == 0 {
        match descriptor(YOLO_RENDEZVOUS_FD) {
            Some(socket) => TcpStore::master(listener(socket)?, patience.rendezvous)?,
            None => TcpStore::bind(address(&host, port)?, patience.rendezvous)?,
        }
    } else {
        TcpStore::client(&host, port, patience.rendezvous)?
    };
    let local = number(LOCAL_WORLD_SIZE).is_none_or(|here| here == world);
    let options = GlooOptions {
        bind: if local { Bind::Loopback } else { Bind::Address(own_address(&host, port)?) },
        timeout: patience.collective,
        ..GlooOptions::default()
    };
    // The group holds the store by reference count, so the store may be dropped here.
    Ok(ProcessGroup::gloo(&store, rank, world, &options)?)
}

#[cfg(unix)]
fn listener(socket: std::fs::File) -> Result<TcpListener, TrainError> {
    Ok(TcpListener::from(std::os::fd::OwnedFd::from(socket)))
}

#[cfg(not(unix))]
fn listener(_socket: std::fs::File) -> Result<TcpListener, TrainError> {
    Err(TrainError::new("sockets cannot be handed over on this system"))
}

fn address(host: &str, port: u16) -> Result<std::net::SocketAddr, TrainError> {
    use std::net::ToSocketAddrs as _;
    (host, port).to_socket_addrs().ok().and_then(|mut found| found.next()).ok_or_else(|| {
        TrainError::new(format!("{MASTER_ADDR} is `{host}`, which this machine cannot resolve"))
    })
}

/// The address of this machine on its route to the master, where its peers can reach it.
fn own_address(host: &str, port: u16) -> Result<String, TrainError> {
    let unreachable =
        |error| TrainError::new(format!("there is no route to {MASTER_ADDR} {host}:{port}: {error}"));
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").map_err(unreachable)?;
    socket.connect((host, port)).map_err(unreachable)?;
    Ok(socket.local_addr().map_err(unreachable)?.ip().to_string())
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

//! Where ranks meet: a store that rank 0 serves, on the socket that the supervisor bound for it or at
//! `MASTER_ADDR` and `MASTER_PORT`. It does not depend on the backend.

use std::fs::File;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs as _, UdpSocket};
use std::time::Duration;

use tch_distributed::TcpStore;
use yolo_base::env::{MASTER_ADDR, MASTER_PORT, YOLO_RENDEZVOUS_FD};

use super::environment::{descriptor, text};
use crate::error::TrainError;

/// The address of the store.
#[derive(Debug)]
pub(super) struct Rendezvous {
    host: String,
    port: u16,
}

impl Rendezvous {
    /// The address in the launcher's variables.
    pub(super) fn from_environment() -> Result<Self, TrainError> {
        let (host, port) = (text(MASTER_ADDR)?, text(MASTER_PORT)?);
        let port = port
            .parse()
            .map_err(|_| TrainError::new(format!("{MASTER_PORT} is `{port}`, which is not a port number")))?;
        Ok(Self { host, port })
    }

    /// Serves the store on rank 0, and connects to it on the others.
    pub(super) fn store(&self, rank: usize, timeout: Duration) -> Result<TcpStore, TrainError> {
        if rank > 0 {
            return Ok(TcpStore::client(&self.host, self.port, timeout)?);
        }
        Ok(match descriptor(YOLO_RENDEZVOUS_FD) {
            Some(socket) => TcpStore::master(listener(socket)?, timeout)?,
            None => TcpStore::bind(self.address()?, timeout)?,
        })
    }

    fn address(&self) -> Result<SocketAddr, TrainError> {
        let host = self.host.as_str();
        (host, self.port).to_socket_addrs().ok().and_then(|mut found| found.next()).ok_or_else(|| {
            TrainError::new(format!("{MASTER_ADDR} is `{host}`, which this machine cannot resolve"))
        })
    }

    /// The address of this machine on its route to the master, where its peers can reach it.
    pub(super) fn own_address(&self) -> Result<String, TrainError> {
        let Self { host, port } = self;
        let unreachable =
            |error| TrainError::new(format!("there is no route to {MASTER_ADDR} {host}:{port}: {error}"));
        let socket = UdpSocket::bind("0.0.0.0:0").map_err(unreachable)?;
        socket.connect((host.as_str(), *port)).map_err(unreachable)?;
        Ok(socket.local_addr().map_err(unreachable)?.ip().to_string())
    }
}

#[cfg(unix)]
fn listener(socket: File) -> Result<TcpListener, TrainError> {
    Ok(TcpListener::from(std::os::fd::OwnedFd::from(socket)))
}

#[cfg(not(unix))]
fn listener(_socket: File) -> Result<TcpListener, TrainError> {
    Err(TrainError::new("sockets cannot be handed over on this system"))
}

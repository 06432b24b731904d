//! Where ranks meet: a store at `MASTER_ADDR` and `MASTER_PORT`. Rank 0 serves it, on the socket that the
//! supervisor bound for it or at that address, unless the launcher does: then all ranks are its clients, and
//! meet in a part of it. None of this depends on the backend.

use std::fs::File;
use std::io::ErrorKind;
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket,
};
use std::time::{Duration, Instant};

use tch_distributed::{PrefixStore, Store, TcpStore};
use yolo_base::address::is_public;
use yolo_base::env::{MASTER_ADDR, MASTER_PORT, YOLO_RENDEZVOUS_FD, YOLO_STORE_PREFIX};
use yolo_base::format::duration;

use super::environment::{descriptor, text};
use super::reporter::Reporter;
use crate::error::TrainError;

/// The pause between two attempts to reach the store, and the longest one of them.
const RETRY: Duration = Duration::from_millis(100);
const ATTEMPT: Duration = Duration::from_secs(5);
/// When a rank first says that it waits for the store, and how often afterwards.
const NEXT_WARNING: Duration = Duration::from_secs(60);

/// The address of the store.
#[derive(Debug)]
pub(super) struct Rendezvous {
    host: String,
    port: u16,
    /// The part of the launcher's store in which the ranks meet; `None` if rank 0 serves the store.
    prefix: Option<String>,
}

impl Rendezvous {
    /// The address in the launcher's variables.
    pub(super) fn from_environment() -> Result<Self, TrainError> {
        let (host, port) = (text(MASTER_ADDR)?, text(MASTER_PORT)?);
        let port = port
            .parse()
            .map_err(|_| TrainError::new(format!("{MASTER_PORT} is `{port}`, which is not a port number")))?;
        Ok(Self { host, port, prefix: text(YOLO_STORE_PREFIX).ok() })
    }

    /// The store of ranks that one supervisor has started: rank 0 serves it, the others connect to it.
    pub(super) fn store(&self, rank: usize, timeout: Duration) -> Result<TcpStore, TrainError> {
        if rank > 0 {
            return Ok(TcpStore::client(&self.host, self.port, timeout)?);
        }
        Ok(match descriptor(YOLO_RENDEZVOUS_FD) {
            Some(socket) => TcpStore::master(listener(socket)?, timeout)?,
            None => TcpStore::bind(self.address()?, timeout)?,
        })
    }

    /// The store of ranks that were started apart. Waits until it is served, at most for the first limit;
    /// the second is for each later wait for a key.
    pub(super) fn shared_store(
        &self,
        rank: usize,
        one_machine: bool,
        (limit, key_timeout): (Duration, Duration),
        reporter: &Reporter,
    ) -> Result<Box<dyn Store>, TrainError> {
        if let Some(prefix) = &self.prefix {
            let left = self.wait(limit, "the launcher's store", reporter)?;
            let whole = self.client(left, key_timeout)?;
            return Ok(Box::new(PrefixStore::new(prefix, &whole)?));
        }
        if rank > 0 {
            let left = self.wait(limit, "rank 0", reporter)?;
            return Ok(Box::new(self.client(left, key_timeout)?));
        }
        let socket = match descriptor(YOLO_RENDEZVOUS_FD) {
            Some(socket) => listener(socket)?,
            None => self.bind(one_machine)?,
        };
        if let Some(address) = socket.local_addr().ok().filter(|address| is_public(address.ip())) {
            reporter.warning(format!(
                "rank 0 listens on {address}, which is {}; the protocol has no password, so a firewall must keep \
                 others away",
                if address.ip().is_unspecified() { "all addresses of this machine" } else { "a public address" }
            ));
        }
        Ok(Box::new(TcpStore::master(socket, key_timeout)?))
    }

    /// The store that answers at the address, within `limit`.
    fn client(&self, limit: Duration, key_timeout: Duration) -> Result<TcpStore, TrainError> {
        let Self { host, port, .. } = self;
        TcpStore::client_within(limit, host, *port, key_timeout).map_err(|error| {
            TrainError::new(format!("what listens at {host}:{port} is not the store of these ranks: {error}"))
                .with_hint(format!(
                    "set {MASTER_PORT} to a port that nothing else uses, or {MASTER_ADDR} to the machine of rank 0"
                ))
        })
    }

    /// Listens on the master's address. Where that name means loopback or an address of a router, as in some
    /// clusters on the master itself, other machines would not come through, so all addresses are used. Nobody
    /// elsewhere can mean 127.0.0.1 by that number.
    fn bind(&self, one_machine: bool) -> Result<TcpListener, TrainError> {
        let address = self.address()?;
        let all = match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let is_name = self.host.parse::<IpAddr>().is_err();
        let bound = match address.ip().is_loopback() && is_name && !one_machine {
            true => TcpListener::bind((all, self.port)),
            false => TcpListener::bind(address),
        };
        let bound = match bound {
            Err(error) if error.kind() == ErrorKind::AddrNotAvailable => TcpListener::bind((all, self.port)),
            bound => bound,
        };
        bound.map_err(|error| {
            let port = self.port;
            let failed =
                TrainError::new(format!("rank 0 cannot listen on port {port} of {}: {error}", self.host));
            match error.kind() {
                ErrorKind::AddrInUse => {
                    failed.with_hint(format!("set {MASTER_PORT} to a free port for all ranks"))
                }
                _ => failed.with_hint(format!("{MASTER_ADDR} must name the machine of rank 0")),
            }
        })
    }

    /// Waits until something listens at the address, and returns the time left. The host's name may not be known
    /// before.
    fn wait(&self, limit: Duration, whom: &str, reporter: &Reporter) -> Result<Duration, TrainError> {
        let Self { host, port, .. } = self;
        let began = Instant::now();
        let mut next_warning = NEXT_WARNING;
        loop {
            let reached = self.address().and_then(|address| {
                TcpStream::connect_timeout(&address, ATTEMPT)
                    .map_err(|error| TrainError::new(error.to_string()))
            });
            let waited = began.elapsed();
            let Err(why) = reached else { return Ok(limit.saturating_sub(waited).max(ATTEMPT)) };
            if waited >= limit {
                return Err(TrainError::new(format!(
                    "{whom} did not come within {}: nothing answers at {host}:{port} ({why})",
                    duration(limit.as_secs_f64())
                ))
                .with_hint(format!(
                    "{MASTER_ADDR} and {MASTER_PORT} must be the address of rank 0 for all ranks"
                )));
            }
            if waited >= next_warning {
                next_warning = waited + NEXT_WARNING;
                reporter.warning(format!(
                    "waiting for {whom} at {host}:{port} for {} ({why})",
                    duration(waited.as_secs_f64())
                ));
            }
            std::thread::sleep(RETRY);
        }
    }

    fn address(&self) -> Result<SocketAddr, TrainError> {
        let host = self.host.as_str();
        (host, self.port).to_socket_addrs().ok().and_then(|mut found| found.next()).ok_or_else(|| {
            TrainError::new(format!("{MASTER_ADDR} is `{host}`, which this machine cannot resolve"))
        })
    }

    /// The address of this machine on its route to the master, where its peers can reach it.
    pub(super) fn own_address(&self) -> Result<String, TrainError> {
        route_to(&self.host, self.port)
    }
}

/// The address of this machine on its route to a host. No packet is sent.
pub(super) fn route_to(host: &str, port: u16) -> Result<String, TrainError> {
    let unreachable = |error| TrainError::new(format!("there is no route to {host}:{port}: {error}"));
    let nobody = || unreachable(std::io::Error::other("the host has no address"));
    let to = (host, port).to_socket_addrs().map_err(unreachable)?.next().ok_or_else(nobody)?;
    let from: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((from, 0)).map_err(unreachable)?;
    socket.connect(to).map_err(unreachable)?;
    Ok(socket.local_addr().map_err(unreachable)?.ip().to_string())
}

#[cfg(unix)]
fn listener(socket: File) -> Result<TcpListener, TrainError> {
    Ok(TcpListener::from(std::os::fd::OwnedFd::from(socket)))
}

#[cfg(not(unix))]
fn listener(_socket: File) -> Result<TcpListener, TrainError> {
    Err(TrainError::new("sockets cannot be handed over on this system"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_that_is_alone_says_where_it_waited() {
        // A port that was free a moment ago.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let rendezvous = Rendezvous { host: "127.0.0.1".to_owned(), port, prefix: None };
        let reporter = Reporter::from_environment(1);
        let error = rendezvous.wait(Duration::from_millis(50), "rank 0", &reporter).unwrap_err().to_string();
        assert!(error.starts_with("rank 0 did not come within"), "{error}");
        assert!(error.contains(&format!("127.0.0.1:{port}")), "{error}");
    }

    #[test]
    fn a_name_that_means_loopback_is_not_enough_for_several_machines() {
        let ip = |host: &str, one_machine| {
            let rendezvous = Rendezvous { host: host.to_owned(), port: 0, prefix: None };
            rendezvous.bind(one_machine).unwrap().local_addr().unwrap().ip()
        };
        assert!(ip("localhost", true).is_loopback());
        assert!(ip("localhost", false).is_unspecified(), "PyTorchJob says localhost to the master");
        assert!(ip("127.0.0.1", false).is_loopback());
        assert!(ip("192.0.2.1", false).is_unspecified());
    }
}

//! The store that one rank serves over TCP, and to which all connect. The server's socket is bound
//! here or by the caller: libtorch would listen on all interfaces, and c10d has no authentication.

#![expect(unsafe_code, reason = "calls the shim's store functions")]

use std::ffi::c_int;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use super::handle::{Backing, Handle};
use super::server::Server;
use crate::error::{Error, ErrorKind, Result};
use crate::ffi;

/// c10d's `TCPStore`: for ranks on one or several machines. The server stops when the master is dropped, and
/// with it all groups and stores that use it.
#[derive(Debug)]
pub struct TcpStore {
    handle: Handle,
    port: u16,
}

impl TcpStore {
    /// Serves a store on a socket that is already bound, and connects to it. Because the port is taken
    /// before it is announced, no other program can take it. Peers may have connected already.
    /// `timeout` limits each later wait for a key.
    ///
    /// # Errors
    /// If the address of the socket cannot be read, or libtorch cannot serve on it. The socket is
    /// closed then.
    pub fn master(listener: TcpListener, timeout: Duration) -> Result<Self> {
        let action = "serving the store";
        let address =
            listener.local_addr().map_err(|error| Error::new(ErrorKind::Other, action, error.to_string()))?;
        let server = Server::new(&reachable(address.ip()).to_string(), address.port());
        let host = ffi::c_string(&server.host, action)?;
        let mut raw = ptr::null_mut();
        // SAFETY: the descriptor is open and nothing here owns it any more. The shim takes ownership,
        // also if it fails. `host` and `raw` outlive the call.
        let status = unsafe {
            ffi::tchd_store_serve(
                into_descriptor(listener),
                host.as_ptr(),
                address.port(),
                ffi::milliseconds(timeout),
                &raw mut raw,
            )
        };
        ffi::check(status, || format!("{action} at {address}"))?;
        Self::own(raw, server, timeout)
    }

    /// Binds `address` and serves a store there. Port 0 selects a free port; see [`Self::port`].
    ///
    /// # Errors
    /// If the address cannot be bound, or libtorch cannot serve on it.
    pub fn bind(address: SocketAddr, timeout: Duration) -> Result<Self> {
        let listener = TcpListener::bind(address).map_err(|error| {
            Error::new(ErrorKind::Other, format!("serving the store at {address}"), error.to_string())
        })?;
        Self::master(listener, timeout)
    }

    /// Connects to the store that another process serves. Waits for at most `timeout` until it
    /// responds; the same limit applies to each later wait for a key.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] if no store responds in time.
    pub fn client(host: &str, port: u16, timeout: Duration) -> Result<Self> {
        Self::client_within(timeout, host, port, timeout)
    }

    /// As [`Self::client`], but waits for at most `limit` until the store responds; `timeout` applies to each
    /// later wait for a key.
    ///
    /// # Errors
    /// As there.
    pub fn client_within(limit: Duration, host: &str, port: u16, timeout: Duration) -> Result<Self> {
        let action = || format!("connecting to the store at {host}:{port}");
        let server = Server::new(host, port);
        let left = server.wait(limit).map_err(|message| Error::new(ErrorKind::Timeout, action(), message))?;
        let host_text = ffi::c_string(host, "connecting to the store")?;
        let mut raw = ptr::null_mut();
        // SAFETY: `host_text` and `raw` outlive the call.
        let status = unsafe {
            ffi::tchd_store_connect(
                host_text.as_ptr(),
                port,
                ffi::milliseconds(left),
                ffi::milliseconds(timeout),
                &raw mut raw,
            )
        };
        ffi::check(status, action)?;
        Self::own(raw, server, timeout)
    }

    /// The port of the server.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Takes ownership of a store that the shim allocated.
    fn own(raw: *mut ffi::Store, server: Server, timeout: Duration) -> Result<Self> {
        let port = server.port;
        Ok(Self { handle: Handle::own(raw, timeout, Some(Arc::new(server)))?, port })
    }
}

impl Backing for TcpStore {
    fn handle(&self) -> &Handle {
        &self.handle
    }
}

/// The address at which this machine reaches a server that is bound to `address`.
fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}

/// Releases the socket as a descriptor for C++.
#[cfg(unix)]
fn into_descriptor(listener: TcpListener) -> c_int {
    std::os::fd::IntoRawFd::into_raw_fd(listener)
}

/// Releases the socket as a handle for C++. It fits in an int: Windows handles have 32 significant bits.
#[cfg(windows)]
fn into_descriptor(listener: TcpListener) -> c_int {
    std::os::windows::io::IntoRawSocket::into_raw_socket(listener) as c_int
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_all_interfaces_is_reached_on_loopback() {
        for (bound, reached) in
            [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("10.0.0.7", "10.0.0.7"), ("fd00::7", "fd00::7")]
        {
            assert_eq!(reachable(bound.parse().unwrap()).to_string(), reached);
        }
    }
}

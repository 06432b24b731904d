//! The sockets of a gloo group. gloo has no function that ends its collectives, but they end when their
//! connections do, so another thread can abort them by shutting down the sockets. They are found by the
//! ports on which the ranks listen.

#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "looks at sockets that gloo owns"))]

use std::net::SocketAddr;

/// How to find the sockets of this rank's gloo among all of the process.
#[derive(Debug)]
pub(crate) struct GlooSockets {
    own_port: Option<u16>,
    peers: Vec<SocketAddr>,
}

impl GlooSockets {
    /// `own_port` is the port on which gloo of this rank listens, and `peers` are the addresses on which
    /// that of other ranks does.
    pub(crate) fn new(own_port: Option<u16>, peers: Vec<SocketAddr>) -> Self {
        Self { own_port, peers }
    }

    /// Shuts down the connections to all other ranks, and returns their number. The group must be alive.
    #[cfg(target_os = "linux")]
    pub(crate) fn shut_down(&self) -> usize {
        let Some(own_port) = self.own_port else { return 0 };
        let of_gloo = |stream: &std::net::TcpStream| {
            let (Ok(own), Ok(peer)) = (stream.local_addr(), stream.peer_addr()) else { return false };
            own.port() == own_port || self.peers.contains(&peer)
        };
        linux::sockets()
            .into_iter()
            .map(|(_, socket)| std::net::TcpStream::from(socket))
            .filter(|stream| of_gloo(stream) && stream.shutdown(std::net::Shutdown::Both).is_ok())
            .count()
    }

    /// Sockets are found on Linux only.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn shut_down(&self) -> usize {
        let _ = (self.own_port, &self.peers);
        0
    }
}

/// Runs `open`, and returns the port of the one socket that began to listen meanwhile, if it is one.
#[cfg(target_os = "linux")]
pub(crate) fn new_listener<T>(open: impl FnOnce() -> T) -> (T, Option<u16>) {
    let before: Vec<_> = linux::listeners().into_iter().map(|(number, _)| number).collect();
    let opened = open();
    let mut new = linux::listeners().into_iter().filter(|(number, _)| !before.contains(number));
    let port = match (new.next(), new.next()) {
        (Some((_, port)), None) => Some(port),
        _ => None,
    };
    (opened, port)
}

/// Sockets are found on Linux only.
#[cfg(not(target_os = "linux"))]
pub(crate) fn new_listener<T>(open: impl FnOnce() -> T) -> (T, Option<u16>) {
    (open(), None)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::net::TcpListener;
    use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

    /// The open TCP sockets of this process: their numbers, and copies of them.
    pub(super) fn sockets() -> Vec<(RawFd, OwnedFd)> {
        let Ok(folder) = std::fs::read_dir("/proc/self/fd") else { return Vec::new() };
        let numbers = folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<RawFd>().ok());
        numbers.filter_map(|number| Some((number, copy(number)?))).collect()
    }

    /// A copy of a descriptor, if it is an internet socket of streams. It may have been closed meanwhile.
    fn copy(number: RawFd) -> Option<OwnedFd> {
        // SAFETY: fcntl fails for a number that is not open; otherwise the copy is ours alone.
        let copy = unsafe {
            let copy = libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0);
            (copy >= 0).then(|| OwnedFd::from_raw_fd(copy))
        }?;
        let family = option(&copy, libc::SO_DOMAIN)?;
        let stream = option(&copy, libc::SO_TYPE)? == libc::SOCK_STREAM;
        (stream && (family == libc::AF_INET || family == libc::AF_INET6)).then_some(copy)
    }

    /// The sockets that listen, with their ports.
    pub(super) fn listeners() -> Vec<(RawFd, u16)> {
        let port = |socket: OwnedFd| Some(TcpListener::from(socket).local_addr().ok()?.port());
        let listens = |socket: &OwnedFd| option(socket, libc::SO_ACCEPTCONN) == Some(1);
        sockets()
            .into_iter()
            .filter(|(_, socket)| listens(socket))
            .filter_map(|(number, socket)| Some((number, port(socket)?)))
            .collect()
    }

    /// An option of a socket that is an int. `None` if it is no socket.
    fn option(socket: &OwnedFd, name: libc::c_int) -> Option<libc::c_int> {
        let (mut value, mut length) = (0, size_of::<libc::c_int>() as libc::socklen_t);
        // SAFETY: the descriptor is open, and the out pointers are local variables of the sizes given.
        let status = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                name,
                (&raw mut value).cast(),
                &raw mut length,
            )
        };
        (status == 0).then_some(value)
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::io::Read as _;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use super::*;

    #[test]
    fn only_connections_of_the_ports_are_shut_down() {
        let (listener, port) = new_listener(|| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        let address = listener.local_addr().unwrap();
        // Other tests of this process may have begun to listen meanwhile.
        assert!(port.is_none_or(|port| port == address.port()));
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut connected = TcpStream::connect(address).unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        let stays = TcpStream::connect(other.local_addr().unwrap()).unwrap();
        let sockets = GlooSockets::new(Some(address.port()), vec![address]);
        assert_eq!(sockets.shut_down(), 2);
        assert_eq!(connected.read(&mut [0]).unwrap(), 0);
        assert_eq!(accepted.read(&mut [0]).unwrap(), 0);
        stays.set_nonblocking(true).unwrap();
        let error = (&stays).read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
        assert_eq!(GlooSockets::new(None, Vec::new()).shut_down(), 0);
    }
}

//! Whether the server of a TCP store responds. c10d's own client waits forever for one that does not.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use crate::error::ErrorKind;

/// Pause between attempts to reach a store that does not listen yet.
const RETRY: Duration = Duration::from_millis(50);

/// The address of a server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Server {
    /// Waits until the server responds, and returns the time left. libtorch's own client waits forever for
    /// a listener that is silent, and prints backtraces while nothing listens.
    pub(super) fn wait(&self, timeout: Duration) -> std::result::Result<Duration, String> {
        let deadline = Instant::now() + timeout;
        // A timeout of 0 would mean no limit.
        let left = || deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        loop {
            let problem = match ping(&self.host, self.port, left) {
                Ok(()) => return Ok(left()),
                Err(error) => error,
            };
            if Instant::now() + RETRY >= deadline {
                return Err(format!("no store responded within {:.1} s ({problem})", timeout.as_secs_f64()));
            }
            std::thread::sleep(RETRY);
        }
    }

    /// Fails unless the server, which responded earlier, still does.
    pub(super) fn responds(&self, timeout: Duration) -> std::result::Result<(), (ErrorKind, String)> {
        let deadline = Instant::now() + timeout;
        let left = || deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let Err(error) = ping(&self.host, self.port, left) else { return Ok(()) };
        let Self { host, port } = self;
        // A read that times out is the one or the other, depending on the system.
        Err(if matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock) {
            let seconds = timeout.as_secs_f64();
            (ErrorKind::Timeout, format!("its server at {host}:{port} did not respond within {seconds:.1} s"))
        } else {
            (ErrorKind::PeerLost, format!("its server at {host}:{port} is gone: {error}"))
        })
    }
}

/// Connects and sends what the client of libtorch 2.11 sends first (`TCPStore::validate` and `ping`).
/// A store responds with the number that it was sent.
fn ping(host: &str, port: u16, left: impl Fn() -> Duration) -> io::Result<()> {
    const VALIDATE: u8 = 0;
    const VALIDATION_MAGIC: u32 = 0x3C85_F7CE;
    const PING: u8 = 13;
    let mut last = io::Error::other("the host has no address");
    for address in (host, port).to_socket_addrs()? {
        let mut stream = match TcpStream::connect_timeout(&address, left()) {
            Ok(stream) => stream,
            Err(error) => {
                last = error;
                continue;
            }
        };
        stream.set_read_timeout(Some(left()))?;
        let number = std::process::id();
        let mut greeting = vec![VALIDATE];
        greeting.extend(VALIDATION_MAGIC.to_ne_bytes());
        greeting.push(PING);
        greeting.extend(number.to_ne_bytes());
        stream.write_all(&greeting)?;
        let mut answer = [0; 4];
        stream.read_exact(&mut answer)?;
        if answer == number.to_ne_bytes() {
            return Ok(());
        }
        last = io::Error::other("the listener is not a c10d store");
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[test]
    fn another_server_is_not_taken_for_a_store() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request").unwrap();
            // Wait for the client to close, so that it reads the response before a reset.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let error = ping("127.0.0.1", port, || Duration::from_secs(5)).unwrap_err();
        assert_eq!(error.to_string(), "the listener is not a c10d store");
        server.join().unwrap();
    }
}

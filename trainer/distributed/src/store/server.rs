//! Whether the server of a TCP store responds. c10d's own client waits forever for one that does not. It is asked
//! before each operation, over one connection that is kept: a rank that waits for others looks ten times a second.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::ErrorKind;

/// Pause between attempts to reach a store that does not listen yet.
const RETRY: Duration = Duration::from_millis(50);

/// The address of a server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) host: String,
    pub(super) port: u16,
    /// Over which it responded last.
    connection: Mutex<Option<TcpStream>>,
}

impl Server {
    /// The server at this address.
    pub(super) fn new(host: &str, port: u16) -> Self {
        Self { host: host.to_owned(), port, connection: Mutex::new(None) }
    }

    /// Waits until the server responds, and returns the time left. libtorch's own client waits forever for
    /// a listener that is silent, and prints backtraces while nothing listens.
    pub(super) fn wait(&self, timeout: Duration) -> std::result::Result<Duration, String> {
        let deadline = Instant::now() + timeout;
        // A timeout of 0 would mean no limit.
        let left = || deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        loop {
            let problem = match self.ping(left) {
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
        let Err(error) = self.ping(left) else { return Ok(()) };
        let Self { host, port, .. } = self;
        // A read that times out is the one or the other, depending on the system.
        Err(if matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock) {
            let seconds = timeout.as_secs_f64();
            (ErrorKind::Timeout, format!("its server at {host}:{port} did not respond within {seconds:.1} s"))
        } else {
            (ErrorKind::PeerLost, format!("its server at {host}:{port} is gone: {error}"))
        })
    }

    /// Asks over the connection of the last time, or over a new one.
    fn ping(&self, left: impl Fn() -> Duration) -> io::Result<()> {
        let mut kept = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut stream) = kept.take()
            && ask(&mut stream, &[], &left).is_ok_and(|answered| answered)
        {
            *kept = Some(stream);
            return Ok(());
        }
        // It may have closed that connection and still be there.
        *kept = Some(connect(&self.host, self.port, left)?);
        Ok(())
    }
}

/// Connects and sends what the client of libtorch 2.11 sends first (`TCPStore::validate` and `ping`).
fn connect(host: &str, port: u16, left: impl Fn() -> Duration) -> io::Result<TcpStream> {
    const VALIDATE: u8 = 0;
    const VALIDATION_MAGIC: u32 = 0x3C85_F7CE;
    let mut last = io::Error::other("the host has no address");
    for address in (host, port).to_socket_addrs()? {
        let mut stream = match TcpStream::connect_timeout(&address, left()) {
            Ok(stream) => stream,
            Err(error) => {
                last = error;
                continue;
            }
        };
        let mut greeting = vec![VALIDATE];
        greeting.extend(VALIDATION_MAGIC.to_ne_bytes());
        if ask(&mut stream, &greeting, &left)? {
            return Ok(stream);
        }
        last = io::Error::other("the listener is not a c10d store");
    }
    Err(last)
}

/// Sends `first` and a ping. A store responds with the number that it was sent.
fn ask(stream: &mut TcpStream, first: &[u8], left: &impl Fn() -> Duration) -> io::Result<bool> {
    const PING: u8 = 13;
    stream.set_read_timeout(Some(left()))?;
    let number = std::process::id();
    let mut question = first.to_vec();
    question.push(PING);
    question.extend(number.to_ne_bytes());
    stream.write_all(&question)?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer)?;
    Ok(answer == number.to_ne_bytes())
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
        let error = Server::new("127.0.0.1", port).ping(|| Duration::from_secs(5)).unwrap_err();
        assert_eq!(error.to_string(), "the listener is not a c10d store");
        server.join().unwrap();
    }

    /// Answers as a store does, so many pings over one connection.
    fn answer(stream: &mut TcpStream, pings: usize) {
        stream.read_exact(&mut [0; 5]).unwrap();
        for _ in 0..pings {
            let mut ping = [0; 5];
            stream.read_exact(&mut ping).unwrap();
            stream.write_all(&ping[1..]).unwrap();
        }
    }

    #[test]
    fn a_server_is_asked_again_over_the_same_connection() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let server = Server::new("127.0.0.1", listener.local_addr().unwrap().port());
        let thread = std::thread::spawn(move || {
            answer(&mut listener.accept().unwrap().0, 3);
            // It closed that connection, and is asked over another one.
            answer(&mut listener.accept().unwrap().0, 2);
        });
        for _ in 0..5 {
            server.responds(Duration::from_secs(60)).unwrap();
        }
        thread.join().unwrap();
        let (kind, message) = server.responds(Duration::from_secs(60)).unwrap_err();
        assert!(kind == ErrorKind::PeerLost && message.contains("is gone"), "{message}");
    }
}

//! One end of a connection between machines: a thread that reads lines, and one that writes them and sends a
//! heartbeat when there is nothing else to send. The system reports a machine that is gone, because what is
//! sent to it is not acknowledged.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;

/// No message is longer than this: a plan with a large model and thousands of class names fits.
const LONGEST: u64 = 16 << 20;
/// The time between heartbeats.
const BEAT: Duration = Duration::from_secs(1);
/// How long the other end may take to close the connection as well.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long a write may wait for the other end.
const WRITE: Duration = Duration::from_secs(10);

/// What the writing thread gets.
enum Outgoing {
    Line(String),
    /// Answered when everything before is written.
    Flush(Sender<()>),
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    lines: Option<Sender<Outgoing>>,
    writer: Option<JoinHandle<()>>,
    /// Disconnected when the other end has closed the connection.
    closed: Receiver<()>,
}

impl Wire {
    /// Starts to read and to write. `heard` gets each line, then `None` when the connection is closed; it
    /// returns whether it wants more.
    pub(super) fn open(
        stream: TcpStream,
        mut heard: impl FnMut(Option<String>) -> bool + Send + 'static,
    ) -> std::io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(None)?;
        stream.set_write_timeout(Some(WRITE))?;
        keep_alive(&stream);
        let reader = stream.try_clone()?;
        let (ended, closed) = channel();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(reader);
            let mut wanted = true;
            // What nobody wants is read as well: a socket that is closed with unread data loses what was sent.
            while let Some(line) = read_line(&mut reader) {
                wanted = wanted && heard(Some(line));
            }
            heard(None);
            drop(ended);
        });
        let (lines, receiver) = channel();
        let own = stream.try_clone()?;
        let writer = std::thread::spawn(move || write_lines(&own, &receiver));
        Ok(Self { stream, lines: Some(lines), writer: Some(writer), closed })
    }

    /// Sends a message. If the connection is lost, the reader says so.
    pub(super) fn send(&self, message: &impl Serialize) {
        if let (Some(lines), Ok(line)) = (&self.lines, serde_json::to_string(message)) {
            let _ = lines.send(Outgoing::Line(line));
        }
    }

    /// Waits until everything is written, but no longer than `limit`.
    pub(super) fn flush(&self, limit: Duration) {
        let (written, answer) = channel();
        if let Some(lines) = &self.lines
            && lines.send(Outgoing::Flush(written)).is_ok()
        {
            // Without an answer, the connection is lost, which the reader says.
            let _ = answer.recv_timeout(limit);
        }
    }

    /// The address of this end.
    pub(super) fn own_address(&self) -> Option<SocketAddr> {
        self.stream.local_addr().ok()
    }

    /// Closes the connection at once.
    pub(super) fn close(&self) {
        // This fails only if it is closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Closes the connection after everything was sent, and the other end has read it or took too long.
    pub(super) fn finish(mut self) {
        self.lines = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
        let _ = self.stream.shutdown(Shutdown::Write);
        let _ = self.closed.recv_timeout(FAREWELL);
        // Ends the reading thread, if the other end keeps the connection open.
        self.close();
    }
}

/// The next line; `None` at the end, or if it is no text or too long.
fn read_line(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut bytes = Vec::new();
    reader.by_ref().take(LONGEST).read_until(b'\n', &mut bytes).ok()?;
    (bytes.pop()? == b'\n').then_some(())?;
    String::from_utf8(bytes).ok()
}

fn write_lines(mut stream: &TcpStream, lines: &Receiver<Outgoing>) {
    loop {
        let line = match lines.recv_timeout(BEAT) {
            Ok(Outgoing::Line(line)) => line,
            Ok(Outgoing::Flush(written)) => {
                // Who asked may have given up.
                let _ = written.send(());
                continue;
            }
            // All messages have this one.
            Err(RecvTimeoutError::Timeout) => r#"{"say":"beat"}"#.to_owned(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if stream.write_all((line + "\n").as_bytes()).is_err() {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
    }
}

/// Lets the system look for the other end when nothing is sent: a machine without power closes nothing. The
/// system answers for a process that is suspended.
#[cfg(target_os = "linux")]
fn keep_alive(stream: &TcpStream) {
    use rustix::net::sockopt;
    // Without it, a suspended run waits for a machine that is gone.
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, Duration::from_secs(10));
    let _ = sockopt::set_tcp_keepintvl(stream, Duration::from_secs(5));
    let _ = sockopt::set_tcp_keepcnt(stream, 4);
    // Heartbeats that are on their way keep the system from asking, so this counts how long they are.
    let _ = sockopt::set_tcp_user_timeout(stream, 30_000);
}

#[cfg(not(target_os = "linux"))]
fn keep_alive(_stream: &TcpStream) {}

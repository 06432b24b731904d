//! The thread that answers other ranks. A message is one line that begins with the token of this rank,
//! which peers read in the store; everything else is ignored.

use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::activity::{Activity, Cause};

/// The most that a peer may send.
const LONGEST: u64 = 4096;

/// How long a peer may take to send its line.
const PATIENCE: Duration = Duration::from_millis(500);

/// Answers until it is dropped.
#[derive(Debug)]
pub(super) struct Answering {
    address: SocketAddr,
    token: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Answering {
    pub(super) fn start(address: IpAddr, activity: Arc<Activity>) -> io::Result<Self> {
        let listener = TcpListener::bind((address, 0))?;
        let address = listener.local_addr()?;
        // The hasher's keys are random.
        let random = |n: u8| RandomState::new().hash_one((n, std::process::id()));
        let token = format!("{:016x}{:016x}", random(0), random(1));
        let stop = Arc::new(AtomicBool::new(false));
        let thread = std::thread::Builder::new().name("roll call".to_owned()).spawn({
            let (token, stop) = (token.clone(), Arc::clone(&stop));
            move || serve(&listener, &token, &stop, &activity)
        })?;
        Ok(Self { address, token, stop, thread: Some(thread) })
    }

    /// What peers need to ask: address and token.
    pub(super) fn announcement(&self) -> String {
        format!("{} {}", self.address, self.token)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // Wakes the thread. If that fails, it ends with the process.
        let woken = TcpStream::connect_timeout(&self.address, PATIENCE).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, token: &str, stop: &AtomicBool, activity: &Activity) {
    for stream in listener.incoming() {
        if stop.load(Ordering::Acquire) {
            return;
        }
        match stream {
            // A peer that breaks off gets no answer.
            Ok(stream) => drop(answer(stream, token, activity)),
            // No more files may be opened, for example.
            Err(_) => std::thread::sleep(PATIENCE),
        }
    }
}

fn answer(stream: TcpStream, token: &str, activity: &Activity) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new((&stream).take(LONGEST)).read_line(&mut line)?;
    let Some(message) = line.trim_end().strip_prefix(token) else { return Ok(()) };
    if let Some(cause) = message.strip_prefix(" cause ").and_then(parse_cause) {
        activity.blame(cause);
    }
    let now = activity.now();
    let running = if now.running { "calling" } else { "elsewhere" };
    let call = now.call.replace(['\n', '\r'], " ");
    writeln!(&stream, "{} {running} {} {call}", now.number, now.since.as_millis())
}

/// The line that tells a peer about a cause, without token.
pub(super) fn cause_line(cause: &Cause) -> String {
    let ranks: Vec<String> = cause.ranks.iter().map(usize::to_string).collect();
    let kind = if cause.lost { "lost" } else { "slow" };
    format!(" cause {} {kind} {}", ranks.join(","), cause.text.replace(['\n', '\r'], " "))
}

fn parse_cause(text: &str) -> Option<Cause> {
    let (ranks, text) = text.split_once(' ')?;
    let (kind, text) = text.split_once(' ')?;
    let ranks = ranks.split(',').map(|rank| rank.parse().ok()).collect::<Option<Vec<_>>>()?;
    Some(Cause { ranks, text: text.to_owned(), lost: kind == "lost" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_survives_the_line() {
        let cause = Cause { ranks: vec![1, 12], text: "rank 1 and 12 are\ngone".to_owned(), lost: true };
        let line = cause_line(&cause);
        let read = parse_cause(line.strip_prefix(" cause ").unwrap()).unwrap();
        assert_eq!(read, Cause { text: "rank 1 and 12 are gone".to_owned(), ..cause });
        assert_eq!(parse_cause("nonsense"), None);
        assert_eq!(parse_cause("x lost text"), None);
    }

    #[test]
    fn a_stranger_learns_and_changes_nothing() {
        let activity = Arc::new(Activity::new());
        let answering = Answering::start([127, 0, 0, 1].into(), Arc::clone(&activity)).unwrap();
        let mut stream = TcpStream::connect(answering.address).unwrap();
        stream.write_all(b"wrong cause 1 lost nonsense\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert_eq!(text, "");
        assert_eq!(activity.cause(), None);
    }
}

//! One started rank: a thread that turns its events and its end into messages, and what the
//! supervisor knows about it.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::Sender;

use yolo_base::exit;
use yolo_plan::event::Event;

use super::process::RankProcess;

/// What arrives at the supervisor, in order.
pub(super) enum Message {
    Event(usize, Event),
    /// A line that is not an event: the trainer has another version.
    Garbled(usize, String),
    /// The process has ended and waits to be reaped.
    Ended(usize),
    /// This process received a signal.
    Signal,
}

/// What is known about one rank.
pub(super) struct RankState {
    child: Child,
    pub(super) log: PathBuf,
    pub(super) doing: String,
    pub(super) failed: Option<Failed>,
    /// Why it was given up although its process still exists.
    pub(super) given_up: Option<String>,
    /// Whether this process killed it because it did not end when asked to.
    pub(super) killed: bool,
    pub(super) ended: Option<ExitStatus>,
}

/// A failure that the rank reported.
pub(super) struct Failed {
    pub(super) message: String,
    pub(super) hint: Option<String>,
    pub(super) doing: String,
    pub(super) peer_lost: bool,
}

impl RankState {
    /// Starts to read the events of rank `rank` and to wait for its end.
    pub(super) fn attach(rank: usize, process: RankProcess, sender: &Sender<Message>) -> Self {
        let RankProcess { child, events, log } = process;
        let pid = child.id();
        let sender = sender.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(events).lines() {
                let Ok(line) = line else { break };
                let message = match serde_json::from_str(&line) {
                    Ok(event) => Message::Event(rank, event),
                    Err(_) => Message::Garbled(rank, line),
                };
                if sender.send(message).is_err() {
                    return;
                }
            }
            // The pipe closes when the process ends, so that its last event comes before its end.
            wait_without_reaping(pid);
            let _ = sender.send(Message::Ended(rank));
        });
        Self {
            child,
            log,
            doing: "starting".to_owned(),
            failed: None,
            given_up: None,
            killed: false,
            ended: None,
        }
    }

    /// The process, unless it was reaped. Until then its number belongs to no other process.
    pub(super) fn pid(&self) -> Option<u32> {
        self.ended.is_none().then(|| self.child.id())
    }

    /// Reaps a process that has ended.
    pub(super) fn reap(&mut self) -> Option<ExitStatus> {
        self.ended = self.child.wait().ok();
        self.ended
    }

    /// Whether it ended as a rank does that was asked to stop: with its state saved, or by SIGTERM.
    pub(super) fn stopped_when_asked(&self) -> bool {
        let Some(status) = self.ended else { return false };
        #[cfg(unix)]
        {
            use std::os::unix::process::ExitStatusExt as _;
            if status.signal() == Some(rustix::process::Signal::TERM.as_raw()) {
                return true;
            }
        }
        status.code() == Some(exit::INTERRUPTED.into())
    }
}

/// Waits until a child has ended and leaves it as a zombie, so that nobody can send a signal to a
/// process that has since taken its number.
#[cfg(unix)]
fn wait_without_reaping(pid: u32) {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    while let Err(rustix::io::Errno::INTR) =
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
    {}
}

/// Elsewhere no ranks are started.
#[cfg(not(unix))]
fn wait_without_reaping(_pid: u32) {}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_rank_keeps_its_process_number_until_it_is_reaped() {
        let (events, writer) = std::io::pipe().unwrap();
        drop(writer);
        let child = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
        let pid = child.id();
        let (sender, receiver) = channel();
        let mut rank = RankState::attach(0, RankProcess { child, events, log: PathBuf::new() }, &sender);
        assert!(matches!(receiver.recv(), Ok(Message::Ended(0))));
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        assert!(stat.rsplit_once(')').unwrap().1.trim_start().starts_with('Z'), "{stat}");
        assert_eq!(rank.pid(), Some(pid));
        assert!(rank.reap().unwrap().success());
        assert_eq!(rank.pid(), None);
    }
}

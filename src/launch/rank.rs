//! The process of one rank: a thread that turns its events and its end into messages, and the signals that
//! it gets.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use yolo_plan::event::Event;
use yolo_protocol::{End, StopSignal};

use super::log::RankLog;
use super::log_text;
use super::message::Message;
use super::process::RankProcess;
use super::signals;

/// A started rank.
pub(super) struct RankIo {
    child: Child,
    pub(super) log: Arc<RankLog>,
    ended: bool,
}

impl RankIo {
    /// Starts to read the events of rank `rank` and to wait for its end.
    pub(super) fn attach(start: u32, rank: usize, process: RankProcess, sender: &Sender<Message>) -> Self {
        let RankProcess { child, events, log } = process;
        let pid = child.id();
        let log = Arc::new(log);
        let (sender, to_log) = (sender.clone(), Arc::clone(&log));
        std::thread::spawn(move || {
            for line in BufReader::new(events).lines() {
                let Ok(line) = line else { break };
                let event: Option<Event> = serde_json::from_str(&line).ok();
                let text = match &event {
                    Some(event) => log_text::of_event(event),
                    None => Some(log_text::of_garbled(&line)),
                };
                let message = match event {
                    Some(event) => Message::Event(start, rank, event),
                    None => Message::Garbled(start, rank, line),
                };
                // First, because a log on a slow drive must not delay it.
                if sender.send(message).is_err() {
                    return;
                }
                match text {
                    Some(text) => to_log.say(&text),
                    None => to_log.date(),
                }
            }
            // The pipe closes when the process ends, so that its last event comes before its end.
            if let Some(end) = wait_without_reaping(pid) {
                to_log.say(&log_text::of_end(end));
            }
            let _ = sender.send(Message::Ended(start, rank));
        });
        Self { child, log, ended: false }
    }

    /// The process, unless it was reaped. Until then its number belongs to no other process.
    pub(super) fn pid(&self) -> Option<u32> {
        (!self.ended).then(|| self.child.id())
    }

    /// The number that the process has or had.
    pub(super) fn former_pid(&self) -> u32 {
        self.child.id()
    }

    /// Reaps a process that has ended.
    pub(super) fn reap(&mut self) -> End {
        let status = self.child.wait();
        self.ended = true;
        status.map_or(End::Exited(-1), end)
    }

    /// Sends a signal to the process, if it exists.
    pub(super) fn signal(&self, signal: StopSignal) {
        if let Some(pid) = self.pid() {
            self.log.say(log_text::of_signal(signal));
            signals::send(pid, signal);
        }
    }

    /// The state of the process as the kernel reports it: R, S, D, T, t or Z; `None` if it is gone, or on
    /// systems without /proc.
    pub(super) fn state(&self) -> Option<char> {
        state(self.pid()?)
    }
}

fn state(pid: u32) -> Option<char> {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program name, in parentheses, may contain anything, including spaces and parentheses.
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// How a process ended.
fn end(status: ExitStatus) -> End {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return End::Signalled(signal);
    }
    End::Exited(status.code().unwrap_or(-1))
}

/// Waits until a child has ended and leaves it as a zombie, so that nobody can send a signal to a
/// process that has since taken its number. Returns how it ended.
#[cfg(unix)]
fn wait_without_reaping(pid: u32) -> Option<End> {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
    loop {
        match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Err(rustix::io::Errno::INTR) => {}
            Err(_) | Ok(None) => return None,
            Ok(Some(status)) => {
                let signal = status.terminating_signal().map(End::Signalled);
                return signal.or_else(|| status.exit_status().map(End::Exited));
            }
        }
    }
}

/// Elsewhere no ranks are started.
#[cfg(not(unix))]
fn wait_without_reaping(_pid: u32) -> Option<End> {
    None
}

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
        let folder = tempfile::tempdir().unwrap();
        let log = RankLog::open(&folder.path().join("rank0.log")).unwrap();
        let mut rank = RankIo::attach(0, 0, RankProcess { child, events, log }, &sender);
        assert!(matches!(receiver.recv(), Ok(Message::Ended(0, 0))));
        assert_eq!(rank.state(), Some('Z'));
        assert_eq!(rank.pid(), Some(pid));
        assert!(rank.reap().is_success());
        assert_eq!(rank.pid(), None);
        let log = fs_err::read_to_string(rank.log.path()).unwrap();
        assert!(log.ends_with(" yolo: the process ended with exit status 0\n"), "{log}");
    }

    #[test]
    fn the_state_of_this_process_is_known() {
        assert!(matches!(state(std::process::id()), Some('R' | 'S')));
        assert_eq!(state(u32::MAX), None);
    }
}

//! Watching the ranks of a run until all have ended. Events, ends of processes and signals arrive on
//! one channel, so that their order is clear. Ctrl-C asks all ranks to save and stop, a second one
//! kills them. After the first failure the other ranks get a moment to report what they saw, so that
//! the rank that broke is named and not one that only lost its peer. A rank that is stopped or frozen
//! fails by its silence.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use yolo_plan::event::{Event, PROTOCOL};

use super::blame;
use super::checkpoint::LastCheckpoint;
use super::failure::LaunchError;
use super::process::RankProcess;
use super::rank::{Failed, Message, RankState};
use super::signals::{Signals, StopSignal, send};
use super::silence::Silence;

/// How long other ranks may still report their failures after the first one, before they are stopped.
const SETTLE: Duration = Duration::from_millis(700);
/// How long a rank may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(5);
/// How long ranks may take to save and end after Ctrl-C.
const INTERRUPT_GRACE: Duration = Duration::from_secs(120);
/// A second signal within this time is the same one, sent twice: `timeout` and some shells signal
/// the process and its group.
const SAME_SIGNAL: Duration = Duration::from_secs(1);

/// How a run ended if no rank failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// All ranks finished.
    Finished,
    /// The user interrupted the run.
    Interrupted {
        /// The checkpoint from which the run can be resumed, if there is one.
        resume_from: Option<PathBuf>,
        /// Whether ranks had to be killed, so that the checkpoint may be older than the interrupt.
        killed: bool,
    },
}

/// Watches until all processes have ended.
pub(super) fn watch(
    group: Vec<RankProcess>,
    checkpoint: LastCheckpoint,
    limit: Option<Duration>,
    listen: &mut dyn FnMut(usize, &Event),
) -> Result<RunEnd, LaunchError> {
    let (sender, receiver) = channel();
    let _signals = Signals::forward(&sender)?;
    let mut watch = Watch::new(group, checkpoint, limit, (&sender, receiver));
    watch.run(listen);
    watch.end_of_run()
}

struct Watch {
    ranks: Vec<RankState>,
    silence: Silence,
    receiver: Receiver<Message>,
    first_failure: Option<Instant>,
    interrupted: Option<Instant>,
    /// When the ranks that still run get the next, harder signal.
    deadline: Option<(Instant, StopSignal)>,
    /// When ranks are abandoned that hang in the kernel, where no signal ends them.
    abandon_at: Option<Instant>,
    /// What each rank was doing that had not ended when the time limit was reached.
    late: Option<Vec<(usize, String)>>,
    /// Whether rank 0 reported that the run is complete.
    finished: bool,
    resume_from: Option<PathBuf>,
    checkpoint: LastCheckpoint,
}

impl Watch {
    fn new(
        group: Vec<RankProcess>,
        checkpoint: LastCheckpoint,
        limit: Option<Duration>,
        (sender, receiver): (&Sender<Message>, Receiver<Message>),
    ) -> Self {
        let group = group.into_iter().enumerate();
        let ranks: Vec<_> = group.map(|(rank, process)| RankState::attach(rank, process, sender)).collect();
        Self {
            silence: Silence::new(ranks.len()),
            ranks,
            receiver,
            first_failure: None,
            interrupted: None,
            deadline: limit.map(|limit| (Instant::now() + limit, StopSignal::Kill)),
            abandon_at: limit.map(|limit| Instant::now() + limit + GRACE),
            late: None,
            finished: false,
            resume_from: None,
            checkpoint,
        }
    }

    fn run(&mut self, listen: &mut dyn FnMut(usize, &Event)) {
        while self.ranks.iter().any(|rank| rank.ended.is_none()) {
            let next = self.deadline.map(|(at, _)| at).into_iter().chain(self.abandon_at).min();
            let until_next = next.map(|at| at.saturating_duration_since(Instant::now()));
            let wait = self.silence.next_check().min(until_next.unwrap_or(Duration::MAX));
            match self.receiver.recv_timeout(wait) {
                Ok(Message::Event(rank, event)) => {
                    self.silence.heard(rank);
                    self.on_event(rank, &event);
                    listen(rank, &event);
                }
                Ok(Message::Garbled(rank, line)) => self.on_other_version(rank, &line),
                Ok(Message::Ended(rank)) => self.on_end(rank),
                Ok(Message::Signal) => self.on_signal(),
                Err(RecvTimeoutError::Timeout) => {}
                // The senders exist as long as a rank does.
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.abandon_at.is_some_and(|at| Instant::now() >= at) {
                break;
            }
            if self.deadline.is_some_and(|(at, _)| at <= Instant::now()) {
                self.escalate();
            }
            self.check_silence();
        }
    }

    /// Gives up a rank that has been silent for too long.
    fn check_silence(&mut self) {
        if self.first_failure.is_some() {
            return;
        }
        let ranks = &self.ranks;
        if let Some((rank, why)) = self.silence.check(|rank| ranks[rank].pid()) {
            self.ranks[rank].given_up = Some(why);
            self.on_failure();
        }
    }

    fn on_event(&mut self, rank: usize, event: &Event) {
        match event {
            Event::Hello { protocol, version, .. } if *protocol != PROTOCOL => {
                let version = version.clone();
                self.on_other_version(rank, &format!("version {version}, protocol {protocol}"));
            }
            Event::Phase { doing } => self.ranks[rank].doing.clone_from(doing),
            Event::Failed { message, hint, doing, peer_lost } => {
                self.ranks[rank].failed = Some(Failed {
                    message: message.clone(),
                    hint: hint.clone(),
                    doing: doing.clone(),
                    peer_lost: *peer_lost,
                });
                self.on_failure();
            }
            Event::Finished { .. } => self.finished = true,
            Event::Interrupted { resume_from } => self.resume_from.clone_from(resume_from),
            _ => {}
        }
    }

    fn on_other_version(&mut self, rank: usize, what: &str) {
        let version = env!("CARGO_PKG_VERSION");
        self.ranks[rank].failed.get_or_insert_with(|| Failed {
            message: format!("speaks a different protocol version than yolo {version}: {what}"),
            hint: Some("use yolo and yolo-trainer from the same release, or unset YOLO_TRAINER".to_owned()),
            doing: "starting".to_owned(),
            peer_lost: false,
        });
        self.on_failure();
    }

    fn on_end(&mut self, rank: usize) {
        let state = &mut self.ranks[rank];
        let succeeded = state.reap().is_some_and(|status| status.success());
        // After Ctrl-C, stopping or being killed is what the user asked for.
        let as_asked = self.interrupted.is_some() && (state.stopped_when_asked() || state.killed);
        if !succeeded && !as_asked {
            self.on_failure();
        }
    }

    /// Starts to end the group, once.
    fn on_failure(&mut self) {
        if self.first_failure.is_none() {
            let now = Instant::now();
            self.first_failure = Some(now);
            self.deadline = Some((now + SETTLE, StopSignal::Terminate));
        }
    }

    fn on_signal(&mut self) {
        if let Some(first) = self.interrupted {
            if first.elapsed() > SAME_SIGNAL {
                self.signal_all(StopSignal::Kill);
            }
            return;
        }
        let now = Instant::now();
        self.interrupted = Some(now);
        self.signal_all(StopSignal::Terminate);
        self.deadline = Some((now + INTERRUPT_GRACE, StopSignal::Kill));
    }

    fn escalate(&mut self) {
        let Some((_, signal)) = self.deadline else { return };
        if self.late.is_none() && self.first_failure.is_none() && self.interrupted.is_none() {
            let running = self.ranks.iter().enumerate().filter(|(_, rank)| rank.ended.is_none());
            self.late = Some(running.map(|(number, rank)| (number, rank.doing.clone())).collect());
        }
        self.signal_all(signal);
        self.deadline = Some((Instant::now() + GRACE, StopSignal::Kill));
    }

    fn signal_all(&mut self, signal: StopSignal) {
        for rank in &mut self.ranks {
            if let Some(pid) = rank.pid() {
                rank.killed |= signal == StopSignal::Kill;
                send(pid, signal);
            }
        }
    }

    fn end_of_run(self) -> Result<RunEnd, LaunchError> {
        if let Some(doing) = self.late {
            return Err(LaunchError::Timeout { doing });
        }
        if self.first_failure.is_some() {
            return Err(LaunchError::Rank(Box::new(blame::failure(&self.ranks, &self.checkpoint))));
        }
        if self.interrupted.is_none() && !self.finished {
            let log = self.ranks.first().map(|rank| rank.log.clone()).unwrap_or_default();
            return Err(LaunchError::Unfinished { log });
        }
        // A signal that came when everything was done changes nothing.
        let complete = self.finished && self.ranks.iter().all(|rank| !rank.killed);
        if self.interrupted.is_none() || complete {
            return Ok(RunEnd::Finished);
        }
        Ok(RunEnd::Interrupted {
            resume_from: self.resume_from.or_else(|| self.checkpoint.path()),
            killed: self.ranks.iter().any(|rank| rank.killed),
        })
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::*;

    /// Runs one rank that is a shell script with events on its stdout. `on_event` may interrupt.
    fn end_of(script: &str, run_dir: &Path, on_event: impl Fn(&Event, &Sender<Message>)) -> RunEnd {
        try_end_of(script, run_dir, on_event).unwrap()
    }

    fn try_end_of(
        script: &str,
        run_dir: &Path,
        on_event: impl Fn(&Event, &Sender<Message>),
    ) -> Result<RunEnd, LaunchError> {
        let (events, writer) = std::io::pipe().unwrap();
        let child =
            Command::new("sh").args(["-c", script]).stdin(Stdio::null()).stdout(writer).spawn().unwrap();
        let process = RankProcess { child, events, log: PathBuf::new() };
        let (sender, receiver) = channel();
        let checkpoint = LastCheckpoint::new(run_dir, true);
        let mut watch = Watch::new(vec![process], checkpoint, None, (&sender, receiver));
        watch.run(&mut |_, event| on_event(event, &sender));
        watch.end_of_run()
    }

    /// Sends Ctrl-C when the rank is alive, and again after each of these pauses.
    fn interrupt(pauses: &'static [u64]) -> impl Fn(&Event, &Sender<Message>) {
        move |event, sender| {
            if matches!(event, Event::Alive) {
                sender.send(Message::Signal).unwrap();
                let sender = sender.clone();
                std::thread::spawn(move || {
                    for pause in pauses {
                        std::thread::sleep(Duration::from_millis(*pause));
                        let _ = sender.send(Message::Signal);
                    }
                });
            }
        }
    }

    const RUNS: &str = r#"echo '{"event":"alive"}'; while :; do sleep 0.05; done"#;

    #[test]
    fn an_interrupted_rank_reports_its_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("report");
        let stops = |event: &str| {
            fs_err::write(&report, event).unwrap();
            format!("trap 'cat {}; exit 130' TERM; {RUNS}", report.display())
        };
        let saved = stops("{\"event\":\"interrupted\",\"resume_from\":\"last.pt\"}\n");
        assert_eq!(
            end_of(&saved, folder.path(), interrupt(&[])),
            RunEnd::Interrupted { resume_from: Some("last.pt".into()), killed: false }
        );
        // A validation has nothing to resume.
        let validation = stops("{\"event\":\"interrupted\",\"resume_from\":null}\n");
        assert_eq!(
            end_of(&validation, folder.path(), interrupt(&[])),
            RunEnd::Interrupted { resume_from: None, killed: false }
        );
    }

    #[test]
    fn a_second_interrupt_kills_and_is_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        let last = folder.path().join("weights/last.pt");
        fs_err::create_dir_all(last.parent().unwrap()).unwrap();
        fs_err::write(&last, "").unwrap();
        assert_eq!(
            end_of(&format!("trap '' TERM; {RUNS}"), folder.path(), interrupt(&[1100])),
            RunEnd::Interrupted { resume_from: Some(last), killed: true }
        );
    }

    #[test]
    fn a_trainer_that_exits_without_finishing_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = try_end_of("exit 0", folder.path(), |_, _| {}).unwrap_err();
        assert!(error.to_string().contains("before the run finished"), "{error}");
    }

    #[test]
    fn an_interrupt_after_the_end_of_the_work_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let finished = r#"{"event":"finished","files":[],"epochs":1,"seconds":1.0,"stopped_early":false}"#;
        let script = format!("trap '' TERM; echo '{finished}'; echo '{{\"event\":\"alive\"}}'; sleep 0.3");
        assert_eq!(end_of(&script, folder.path(), interrupt(&[])), RunEnd::Finished);
    }
}

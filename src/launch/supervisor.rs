//! Watching the ranks of a run to their end. Events, ends of processes and signals arrive on one
//! channel, so that their order is clear. Ctrl-C asks all ranks to save and stop, a second one
//! kills them. After the first failure the others get a moment to tell what they saw, so that the
//! rank that broke is named and not one that only lost its peer. A rank that is stopped or frozen
//! fails by its silence.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use yolo_plan::event::{Event, PROTOCOL};

use super::Outcome;
use super::failure::{LaunchError, RankFailure, describe, last_lines};
use super::process::RankProcess;
use super::silence::Silence;

/// After the first failure, how long others may still tell theirs before they are stopped.
const SETTLE: Duration = Duration::from_millis(700);
/// How long a rank may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(5);
/// How long ranks may take to save and end after Ctrl-C.
const INTERRUPT_GRACE: Duration = Duration::from_secs(120);
/// A second signal within this time is the same one, sent twice: `timeout` and some shells signal
/// the process and its group.
const SAME_SIGNAL: Duration = Duration::from_secs(1);
/// The trainer's exit code after an interrupt that was saved.
const INTERRUPTED: i32 = 130;

enum Message {
    Event(usize, Event),
    /// A line that is no event: the trainer is of another version.
    Garbled(usize, String),
    Ended(usize, ExitStatus),
    Signal,
}

/// What is known of one rank.
struct RankState {
    pid: u32,
    log: PathBuf,
    doing: String,
    failed: Option<Failed>,
    /// Why it was given up though its process lives.
    given_up: Option<String>,
    /// Whether this process killed it, because it did not end when it was asked to.
    killed: bool,
    ended: Option<ExitStatus>,
}

struct Failed {
    message: String,
    hint: Option<String>,
    doing: String,
    peer_lost: bool,
}

/// Watches until all processes have ended.
pub(super) fn watch(
    group: Vec<RankProcess>,
    run_dir: &Path,
    limit: Option<Duration>,
    listen: &mut dyn FnMut(usize, &Event),
) -> Result<Outcome, LaunchError> {
    let (sender, receiver) = channel();
    let _signals = Signals::watch(&sender)?;
    let ranks: Vec<RankState> =
        group.into_iter().enumerate().map(|(rank, process)| attach(rank, process, &sender)).collect();
    let mut watch = Watch {
        silence: Silence::new(ranks.len()),
        ranks,
        receiver,
        first_failure: None,
        interrupted: None,
        deadline: limit.map(|limit| (Instant::now() + limit, Step::Kill)),
        give_up: limit.map(|limit| Instant::now() + limit + GRACE),
        late: None,
        resume_from: None,
        run_dir: run_dir.to_owned(),
    };
    watch.run(listen);
    watch.outcome()
}

/// Reads a rank's events and waits for its end, each on a thread of its own.
fn attach(rank: usize, process: RankProcess, sender: &Sender<Message>) -> RankState {
    let RankProcess { mut child, events, log } = process;
    let pid = child.id();
    let to_events = sender.clone();
    let to_end = sender.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(events).lines() {
            let Ok(line) = line else { break };
            let message = match serde_json::from_str(&line) {
                Ok(event) => Message::Event(rank, event),
                Err(_) => Message::Garbled(rank, line),
            };
            if to_events.send(message).is_err() {
                return;
            }
        }
        // The pipe closes when the process ends, so the last event is read before the end is told.
        if let Ok(status) = child.wait() {
            let _ = to_end.send(Message::Ended(rank, status));
        }
    });
    RankState {
        pid,
        log,
        doing: "starting".to_owned(),
        failed: None,
        given_up: None,
        killed: false,
        ended: None,
    }
}

struct Watch {
    ranks: Vec<RankState>,
    silence: Silence,
    receiver: Receiver<Message>,
    first_failure: Option<Instant>,
    interrupted: Option<Instant>,
    /// When the next, harder step is taken against ranks that still live.
    deadline: Option<(Instant, Step)>,
    /// When ranks are left behind that hang in the kernel, where no signal ends them.
    give_up: Option<Instant>,
    /// What each rank was doing that had not ended when the time was over.
    late: Option<Vec<(usize, String)>>,
    resume_from: Option<PathBuf>,
    run_dir: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Terminate,
    Kill,
}

impl Watch {
    fn run(&mut self, listen: &mut dyn FnMut(usize, &Event)) {
        while self.ranks.iter().any(|rank| rank.ended.is_none()) {
            let next = self.deadline.map(|(at, _)| at).into_iter().chain(self.give_up).min();
            let until_next = next.map(|at| at.saturating_duration_since(Instant::now()));
            let wait = self.silence.next_look().min(until_next.unwrap_or(Duration::MAX));
            match self.receiver.recv_timeout(wait) {
                Ok(Message::Event(rank, event)) => {
                    self.silence.heard(rank);
                    self.hear(rank, &event);
                    listen(rank, &event);
                }
                Ok(Message::Garbled(rank, line)) => self.misunderstood(rank, &line),
                Ok(Message::Ended(rank, status)) => self.end(rank, status),
                Ok(Message::Signal) => self.interrupt(),
                Err(RecvTimeoutError::Timeout) => {}
                // The senders live as long as a rank does.
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.is_stuck() {
                break;
            }
            if self.deadline.is_some_and(|(at, _)| at <= Instant::now()) {
                self.escalate();
            }
            self.listen_to_silence();
        }
    }

    /// Gives up a rank that has been silent for too long.
    fn listen_to_silence(&mut self) {
        if self.first_failure.is_some() {
            return;
        }
        let ranks = &self.ranks;
        let alive = |rank: usize| ranks[rank].ended.is_none().then_some(ranks[rank].pid);
        if let Some((rank, why)) = self.silence.check(alive) {
            self.ranks[rank].given_up = Some(why);
            self.failure();
        }
    }

    fn hear(&mut self, rank: usize, event: &Event) {
        match event {
            Event::Hello { protocol, version, .. } if *protocol != PROTOCOL => {
                let version = version.clone();
                self.misunderstood(rank, &format!("version {version}, protocol {protocol}"));
            }
            Event::Phase { doing } => self.ranks[rank].doing.clone_from(doing),
            Event::Failed { message, hint, doing, peer_lost } => {
                self.ranks[rank].failed = Some(Failed {
                    message: message.clone(),
                    hint: hint.clone(),
                    doing: doing.clone(),
                    peer_lost: *peer_lost,
                });
                self.failure();
            }
            Event::Interrupted { resume_from } => self.resume_from.clone_from(resume_from),
            _ => {}
        }
    }

    fn misunderstood(&mut self, rank: usize, what: &str) {
        let version = env!("CARGO_PKG_VERSION");
        self.ranks[rank].failed.get_or_insert_with(|| Failed {
            message: format!("speaks another version of the protocol than yolo {version}: {what}"),
            hint: Some("use the two programs of one release, or unset YOLO_TRAINER".to_owned()),
            doing: "starting".to_owned(),
            peer_lost: false,
        });
        self.failure();
    }

    fn end(&mut self, rank: usize, status: ExitStatus) {
        self.ranks[rank].ended = Some(status);
        let asked = self.interrupted.is_some() && status.code() == Some(INTERRUPTED);
        if !status.success() && !asked {
            self.failure();
        }
    }

    /// Starts the end of the group, once.
    fn failure(&mut self) {
        if self.first_failure.is_none() {
            let now = Instant::now();
            self.first_failure = Some(now);
            self.deadline = Some((now + SETTLE, Step::Terminate));
        }
    }

    fn interrupt(&mut self) {
        if let Some(first) = self.interrupted {
            if first.elapsed() > SAME_SIGNAL {
                self.signal_all(Step::Kill);
            }
            return;
        }
        let now = Instant::now();
        self.interrupted = Some(now);
        self.signal_all(Step::Terminate);
        self.deadline = Some((now + INTERRUPT_GRACE, Step::Kill));
    }

    /// Whether ranks live on that were killed when their time was over.
    fn is_stuck(&self) -> bool {
        self.give_up.is_some_and(|at| Instant::now() >= at)
    }

    fn escalate(&mut self) {
        let Some((_, step)) = self.deadline else { return };
        if self.late.is_none() && self.first_failure.is_none() && self.interrupted.is_none() {
            let alive = self.ranks.iter().enumerate().filter(|(_, rank)| rank.ended.is_none());
            self.late = Some(alive.map(|(number, rank)| (number, rank.doing.clone())).collect());
        }
        self.signal_all(step);
        self.deadline = match step {
            Step::Terminate => Some((Instant::now() + GRACE, Step::Kill)),
            Step::Kill => Some((Instant::now() + GRACE, Step::Kill)),
        };
    }

    fn signal_all(&mut self, step: Step) {
        for rank in self.ranks.iter_mut().filter(|rank| rank.ended.is_none()) {
            rank.killed |= step == Step::Kill;
            signal(rank.pid, step);
        }
    }

    fn outcome(self) -> Result<Outcome, LaunchError> {
        if let Some(doing) = self.late {
            return Err(LaunchError::Late { doing });
        }
        if self.first_failure.is_none() {
            return Ok(match self.interrupted {
                Some(_) => Outcome::Interrupted { resume_from: self.resume_from },
                None => Outcome::Finished,
            });
        }
        let world = self.ranks.len();
        let culprit = culprit(&self.ranks);
        let state = &self.ranks[culprit];
        let last = self.run_dir.join("weights").join("last.pt");
        let resume = last.exists().then(|| format!("`yolo train --resume {}` continues it", last.display()));
        let failure = match (&state.given_up, &state.failed) {
            (Some(why), _) => RankFailure {
                rank: culprit,
                world,
                doing: state.doing.clone(),
                why: why.clone(),
                hint: resume,
                last_lines: Vec::new(),
                log: state.log.clone(),
                spoke: false,
            },
            (None, Some(failed)) => RankFailure {
                rank: culprit,
                world,
                doing: failed.doing.clone(),
                why: if world == 1 { failed.message.clone() } else { format!("failed: {}", failed.message) },
                hint: failed.hint.clone().or(resume),
                last_lines: Vec::new(),
                log: state.log.clone(),
                spoke: true,
            },
            (None, None) => {
                let (why, hint) = match state.ended {
                    _ if state.killed => {
                        ("hung, did not end when it was asked to, and was killed".to_owned(), None)
                    }
                    Some(status) => describe(status),
                    None => ("ended".to_owned(), None),
                };
                let hints: Vec<String> = hint.into_iter().chain(resume).collect();
                RankFailure {
                    rank: culprit,
                    world,
                    doing: state.doing.clone(),
                    why,
                    hint: (!hints.is_empty()).then(|| hints.join("; ")),
                    last_lines: last_lines(&state.log),
                    log: state.log.clone(),
                    spoke: false,
                }
            }
        };
        Err(LaunchError::Rank(Box::new(failure)))
    }
}

/// The rank to blame: one that was given up, else one that died without a word or failed by itself,
/// else one that had to be killed, else one that lost a peer. Ranks that this process stopped
/// afterwards come last.
fn culprit(ranks: &[RankState]) -> usize {
    let blame = |rank: &RankState| match (&rank.failed, rank.ended) {
        _ if rank.given_up.is_some() => 0,
        (Some(failed), _) if !failed.peer_lost => 1,
        (None, Some(status)) if rank.killed && !status.success() => 2,
        (None, Some(status)) if !status.success() && !stopped_by_us(status) => 1,
        (Some(_), _) => 3,
        (None, Some(status)) if !status.success() => 4,
        _ => 5,
    };
    (0..ranks.len()).min_by_key(|&index| blame(&ranks[index])).unwrap_or(0)
}

/// Whether a rank ended as one does that was asked to: saved, or by SIGTERM.
fn stopped_by_us(status: ExitStatus) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt as _;
        if status.signal() == Some(rustix::process::Signal::TERM.as_raw()) {
            return true;
        }
    }
    status.code() == Some(INTERRUPTED)
}

#[cfg(unix)]
fn signal(pid: u32, step: Step) {
    use rustix::process::{Pid, Signal, kill_process};
    let signal = match step {
        Step::Terminate => Signal::TERM,
        Step::Kill => Signal::KILL,
    };
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It fails only when the process has just ended, which is what is wanted.
        let _ = kill_process(pid, signal);
    }
}

#[cfg(not(unix))]
fn signal(_pid: u32, _step: Step) {}

/// Ctrl-C, SIGTERM and SIGHUP as messages, for as long as this lives.
struct Signals {
    #[cfg(unix)]
    handle: signal_hook::iterator::Handle,
}

impl Signals {
    #[cfg(unix)]
    fn watch(sender: &Sender<Message>) -> Result<Self, LaunchError> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])
            .map_err(|source| LaunchError::Signals { source })?;
        let handle = signals.handle();
        let sender = sender.clone();
        std::thread::spawn(move || {
            for _ in signals.forever() {
                if sender.send(Message::Signal).is_err() {
                    return;
                }
            }
        });
        Ok(Self { handle })
    }

    #[cfg(not(unix))]
    fn watch(_sender: &Sender<Message>) -> Result<Self, LaunchError> {
        let _ = Message::Signal;
        Ok(Self {})
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        #[cfg(unix)]
        self.handle.close();
    }
}

//! Connects the state machine that supervises a run, [`yolo_protocol::Supervisor`], to processes, pipes,
//! signals and a clock. All decisions are the machine's; this file carries them out.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use yolo_base::format::count;
use yolo_plan::event::{Event, silence_limit};
use yolo_protocol::{Action, Config, Failure, Input, Supervisor, ToMember, Verdict};

use super::cause;
use super::checkpoint::LastCheckpoint;
use super::failure::{LaunchError, RankFailure};
use super::machines::{Heard, Team, refuse_late};
use super::memory::MemoryWatch;
use super::message::Message;
use super::process::RankProcess;
use super::rank::RankIo;
use super::signals::{Signals, suspend_self};

/// A run that stands still for this part of the silence limit has stalled, if its steps are short.
const STALL: u32 = 3;

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

/// What differs between runs.
pub(super) struct Terms<'a> {
    /// The number of the first rank here among all ranks. The state machine counts from 0, the user reads
    /// numbers among all.
    pub(super) first: usize,
    /// Ranks over all machines.
    pub(super) world_size: usize,
    /// The time within which the ranks must have ended.
    pub(super) limit: Option<Duration>,
    /// How many times a failed run is started again.
    pub(super) restarts: u32,
    /// Starts the ranks again, from this checkpoint if there is one.
    pub(super) restart: &'a dyn Fn(Option<PathBuf>) -> Result<Vec<RankProcess>, LaunchError>,
    /// Where NCCL says which ranks are behind.
    pub(super) ras: Option<SocketAddr>,
    /// Gets every event with the number of its rank, and warnings of the supervisor without one.
    pub(super) listen: &'a mut dyn FnMut(Option<usize>, &Event),
    /// The machines of the run, if it has several.
    pub(super) team: Option<&'a Team>,
}

/// Starts the ranks, and watches until all processes have ended. Signals are handled before the first rank
/// starts, so that none is left behind. `heard` is what other machines send.
pub(super) fn watch(
    start: impl FnOnce() -> Result<Vec<RankProcess>, LaunchError>,
    heard: Option<Receiver<Heard>>,
    checkpoint: LastCheckpoint,
    terms: Terms<'_>,
) -> Result<RunEnd, LaunchError> {
    let (sender, receiver) = channel();
    let _signals = Signals::forward(&sender)?;
    let memory = MemoryWatch::new();
    if let (Some(heard), Some(team)) = (heard, terms.team) {
        let (machines, sender) = (team.machines(), sender.clone());
        std::thread::spawn(move || forward(&heard, &machines, &sender));
    }
    let mut watch = Watch::new(start()?, checkpoint, memory, terms, (sender, receiver));
    watch.run();
    watch.end_of_run()
}

pub(super) struct Watch<'a> {
    pub(super) machine: Supervisor,
    pub(super) started: Instant,
    /// How many times the ranks were started, minus one.
    pub(super) start: u32,
    pub(super) ranks: Vec<RankIo>,
    pub(super) sender: Sender<Message>,
    pub(super) receiver: Receiver<Message>,
    pub(super) checkpoint: LastCheckpoint,
    pub(super) memory: MemoryWatch,
    pub(super) terms: Terms<'a>,
    /// The machines on which a signal was sent.
    pub(super) signalled: Vec<usize>,
}

impl<'a> Watch<'a> {
    fn new(
        group: Vec<RankProcess>,
        checkpoint: LastCheckpoint,
        memory: MemoryWatch,
        terms: Terms<'a>,
        (sender, receiver): (Sender<Message>, Receiver<Message>),
    ) -> Self {
        let silence = silence_limit();
        let config = Config {
            machines: terms.team.map_or_else(|| vec![group.len()], Team::ranks),
            others: terms.team.is_none() && group.len() < terms.world_size,
            silence,
            stall: silence / STALL,
            limit: terms.limit,
            restarts: terms.restarts,
        };
        let machine = Supervisor::new(config, Duration::ZERO);
        let ranks = attach(0, group, &sender);
        let started = Instant::now();
        Self {
            machine,
            started,
            start: 0,
            ranks,
            sender,
            receiver,
            checkpoint,
            memory,
            terms,
            signalled: Vec::new(),
        }
    }

    fn run(&mut self) {
        while self.machine.verdict().is_none() {
            let message = self.receiver.recv_timeout(self.machine.wake_in());
            match message {
                Ok(Message::Event(start, rank, event)) if start == self.start => {
                    self.handle(Input::Event(rank, event.clone()));
                    (self.terms.listen)(Some(self.terms.first + rank), &event);
                }
                Ok(Message::Garbled(start, rank, line)) if start == self.start => {
                    self.handle(Input::Garbled(rank, line));
                }
                Ok(Message::Ended(start, rank)) if start == self.start => {
                    let end = self.ranks[rank].reap();
                    self.handle(Input::Ended(rank, end));
                }
                Ok(Message::Nccl(start, text)) if start == self.start => self.warn(text),
                Ok(Message::Signal(signal)) => self.on_signal(0, signal),
                Ok(Message::Suspend) => self.handle(Input::Suspend),
                Ok(Message::FromMachine(machine, message)) => {
                    self.handle(Input::Heard(machine));
                    self.on_machine(machine, message);
                }
                Ok(Message::MachineClosed(machine)) => self.handle(Input::Closed(machine)),
                // What a rank of an earlier start sent, or the time has come.
                Ok(_) | Err(RecvTimeoutError::Timeout) => self.handle(Input::Tick),
                // `self.sender` exists as long as the receiver.
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Passes an input to the machine, and the answers to what it asks.
    pub(super) fn handle(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            for action in self.machine.handle(self.started.elapsed(), input) {
                inputs.extend(self.act(action));
            }
        }
    }

    fn act(&mut self, action: Action) -> Option<Input> {
        match action {
            Action::Signal(rank, signal) => match self.ranks.get(rank) {
                Some(process) => process.signal(signal),
                None => self.send_about(rank, &ToMember::Signal { rank, signal }),
            },
            Action::Observe(rank) => match self.ranks.get(rank) {
                Some(process) => return Some(Input::State(rank, process.state())),
                None => self.send_about(rank, &ToMember::Observe { rank }),
            },
            Action::SuspendSelf => {
                if let Some(team) = self.terms.team {
                    team.flush();
                }
                suspend_self();
                return Some(Input::Continue);
            }
            Action::Restart { failure, restart } => return Some(self.restart(&failure, restart)),
            Action::Disconnect(machine) => {
                if let Some(team) = self.terms.team {
                    team.disconnect(machine);
                }
            }
            Action::Notice(notice) => self.tell(&notice),
        }
        None
    }

    fn restart(&mut self, failure: &Failure, restart: u32) -> Input {
        let checkpoint = self.checkpoint.path();
        let failure = self.explain(failure);
        let from = checkpoint.as_ref().map_or("the beginning".to_owned(), |path| path.display().to_string());
        let restarts = count(self.terms.restarts as usize, "restart");
        self.warn(format!("{failure}; restarting from {from} ({restart} of {restarts})"));
        self.memory = MemoryWatch::new();
        match (self.terms.restart)(checkpoint) {
            Ok(group) => {
                self.start += 1;
                self.ranks = attach(self.start, group, &self.sender);
                Input::Restarted
            }
            Err(error) => {
                self.warn(format!("the run cannot be restarted: {error}"));
                Input::NotRestarted
            }
        }
    }

    pub(super) fn explain(&self, failure: &Failure) -> RankFailure {
        let numbers = (self.number(failure.rank), self.terms.world_size);
        let seen = cause::Seen {
            rank: &self.machine.ranks()[failure.rank],
            process: self.ranks.get(failure.rank),
            host: self.host_of(failure.rank),
        };
        cause::explain(failure, numbers, seen, &self.checkpoint, &self.memory)
    }

    /// The host of a rank on another machine.
    pub(super) fn host_of(&self, rank: usize) -> Option<&str> {
        let team = self.terms.team?;
        (rank >= self.ranks.len()).then(|| team.name(team.machine_of(rank)))
    }

    /// The number of a rank among all ranks.
    pub(super) fn number(&self, rank: usize) -> usize {
        self.terms.first + rank
    }

    pub(super) fn warn(&mut self, message: String) {
        (self.terms.listen)(None, &Event::Warning { message });
    }

    fn end_of_run(self) -> Result<RunEnd, LaunchError> {
        match self.machine.verdict() {
            Some(Verdict::Finished) => Ok(RunEnd::Finished),
            Some(Verdict::Interrupted { resume_from, killed }) => Ok(RunEnd::Interrupted {
                resume_from: resume_from.clone().or_else(|| self.checkpoint.path()),
                killed: *killed,
            }),
            Some(Verdict::Failed(failure)) => Err(LaunchError::Rank(Box::new(self.explain(failure)))),
            Some(Verdict::TimedOut(late)) => {
                let doing =
                    |rank: &usize| (self.number(*rank), self.machine.ranks()[*rank].doing().to_owned());
                Err(LaunchError::Timeout { doing: late.iter().map(doing).collect() })
            }
            Some(Verdict::Unfinished) | None => {
                let log = self.ranks.first().map(|rank| rank.log.path().to_owned()).unwrap_or_default();
                Err(LaunchError::Unfinished { log })
            }
        }
    }
}

/// Turns what other machines send into messages.
fn forward(heard: &Receiver<Heard>, machines: &[(u64, usize)], sender: &Sender<Message>) {
    let machine_of =
        |connection| machines.iter().find(|(of, _)| *of == connection).map(|(_, machine)| *machine);
    while let Ok(heard) = heard.recv() {
        let message = match heard {
            Heard::Arrived(stream, _) => {
                refuse_late(stream);
                None
            }
            Heard::Line(connection, line) => {
                let message = serde_json::from_str(&line).ok();
                machine_of(connection)
                    .zip(message)
                    .map(|(machine, message)| Message::FromMachine(machine, message))
            }
            Heard::Closed(connection) => machine_of(connection).map(Message::MachineClosed),
        };
        if message.is_some_and(|message| sender.send(message).is_err()) {
            return;
        }
    }
}

fn attach(start: u32, group: Vec<RankProcess>, sender: &Sender<Message>) -> Vec<RankIo> {
    let group = group.into_iter().enumerate();
    group.map(|(rank, process)| RankIo::attach(start, rank, process, sender)).collect()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::path::Path;
    use std::process::{Command, Stdio};

    use yolo_protocol::Signal;

    use super::super::log::RankLog;
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
        let folder = tempfile::tempdir().unwrap();
        let log = RankLog::open(&folder.path().join("rank0.log")).unwrap();
        let process = RankProcess { child, events, log };
        let (sender, receiver) = channel();
        let checkpoint = LastCheckpoint::new(run_dir, true);
        let user = sender.clone();
        let mut listen = |_: Option<usize>, event: &Event| on_event(event, &user);
        let restart = |_| Ok(Vec::new());
        let terms = Terms {
            first: 0,
            world_size: 1,
            limit: None,
            ras: None,
            restarts: 0,
            restart: &restart,
            listen: &mut listen,
            team: None,
        };
        let mut watch = Watch::new(vec![process], checkpoint, MemoryWatch::new(), terms, (sender, receiver));
        watch.run();
        watch.end_of_run()
    }

    /// Sends Ctrl-C when the rank is alive, and again after each of these pauses.
    fn interrupt(pauses: &'static [u64]) -> impl Fn(&Event, &Sender<Message>) {
        move |event, sender| {
            if matches!(event, Event::Alive { .. }) {
                sender.send(Message::Signal(Signal::Interrupt)).unwrap();
                let sender = sender.clone();
                std::thread::spawn(move || {
                    for pause in pauses {
                        std::thread::sleep(Duration::from_millis(*pause));
                        let _ = sender.send(Message::Signal(Signal::Interrupt));
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
            end_of(&format!("trap '' TERM; {RUNS}"), folder.path(), interrupt(&[50])),
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

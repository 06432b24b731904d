//! Connects the agent on a machine that is not the master, [`yolo_protocol::Member`], to processes, pipes,
//! signals and the connection. All decisions are the agent's and the master's.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use yolo_base::Hint as _;
use yolo_plan::RunPlan;
use yolo_protocol::meeting::{MeetingError, ToWaiting};
use yolo_protocol::{Member, MemberAction, MemberInput, MemberVerdict};

use super::error::MachinesError;
use super::join::Joined;
use super::wire::Wire;
use crate::launch::failure::LaunchError;
use crate::launch::message::Message;
use crate::launch::nccl;
use crate::launch::process::{self, Store};
use crate::launch::programs::Programs;
use crate::launch::rank::RankIo;
use crate::launch::run_folder::{self, PlanFile};
use crate::launch::signals::Signals;

/// How the run ended, as the master said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemberEnd {
    /// The exit status of the master.
    pub(crate) status: u8,
    /// How the run ended.
    pub(crate) how: String,
}

/// Carries out what the master wants until the run is over. `plan` is the part of this machine, whose folder is
/// created when the run starts; `exist_ok` is whether that may exist. `say` prints a line.
///
/// # Errors
/// When the master refuses the run or is lost.
pub(crate) fn serve(
    joined: Joined,
    plan: RunPlan,
    exist_ok: bool,
    programs: &Programs,
    say: &mut dyn FnMut(String),
) -> Result<MemberEnd, LaunchError> {
    let Joined { wire, heard, machines, number, .. } = joined;
    let (sender, receiver) = channel();
    let _signals = Signals::forward(&sender)?;
    let forward = sender.clone();
    std::thread::spawn(move || forward_lines(&heard, &forward));
    let started = Instant::now();
    let machine = Member::new(plan.ranks.first, plan.ranks.devices.len(), Duration::ZERO);
    let place = (number, machines);
    let mut serving = Serving {
        machine,
        started,
        place,
        wire,
        plan,
        folder: None,
        exist_ok,
        programs,
        ranks: Vec::new(),
        say,
        sender,
    };
    serving.run(&receiver)
}

/// Turns lines of the master into messages.
fn forward_lines(heard: &Receiver<Option<String>>, sender: &Sender<Message>) {
    while let Ok(Some(line)) = heard.recv() {
        let message = match serde_json::from_str(&line) {
            Ok(message) => Message::FromMaster(message),
            // The master may still refuse the run.
            Err(_) => match serde_json::from_str(&line) {
                Ok(ToWaiting::Refused { message, hint }) => Message::Refused(message, hint),
                _ => continue,
            },
        };
        if sender.send(message).is_err() {
            return;
        }
    }
    let _ = sender.send(Message::MasterClosed);
}

struct Serving<'a> {
    machine: Member,
    started: Instant,
    /// The number of this machine, and of machines.
    place: (usize, usize),
    wire: Wire,
    plan: RunPlan,
    /// The run folder of this machine, from the first start on.
    folder: Option<PlanFile>,
    exist_ok: bool,
    programs: &'a Programs,
    ranks: Vec<RankIo>,
    say: &'a mut dyn FnMut(String),
    sender: Sender<Message>,
}

impl Serving<'_> {
    fn run(&mut self, receiver: &Receiver<Message>) -> Result<MemberEnd, LaunchError> {
        let first = self.plan.ranks.first;
        while self.machine.verdict().is_none() {
            let now = self.machine.start();
            let input = match receiver.recv_timeout(self.machine.wake_in()) {
                Ok(Message::Event(start, rank, event)) if start == now => {
                    MemberInput::Event(first + rank, event)
                }
                Ok(Message::Garbled(start, rank, line)) if start == now => {
                    MemberInput::Garbled(first + rank, line)
                }
                Ok(Message::Ended(start, rank)) if start == now => {
                    let end = self.ranks[rank].reap();
                    MemberInput::Ended(first + rank, end)
                }
                Ok(Message::Signal(signal)) => MemberInput::Signal(signal),
                Ok(Message::Suspend) => {
                    (self.say)("Ctrl-Z suspends a run on machine 0 only".to_owned());
                    continue;
                }
                Ok(Message::FromMaster(message)) => MemberInput::Message(message),
                Ok(Message::Refused(message, hint)) => {
                    return Err(MachinesError::from(MeetingError::Refused { message, hint }).into());
                }
                Ok(Message::MasterClosed) => MemberInput::Closed,
                Ok(_) | Err(RecvTimeoutError::Timeout) => MemberInput::Tick,
                // `self.sender` exists as long as the receiver.
                Err(RecvTimeoutError::Disconnected) => break,
            };
            self.handle(input);
        }
        self.end()
    }

    fn handle(&mut self, input: MemberInput) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            for action in self.machine.handle(self.started.elapsed(), input) {
                inputs.extend(self.act(action));
            }
        }
    }

    fn act(&mut self, action: MemberAction) -> Option<MemberInput> {
        // The number comes over the network.
        let index = |rank: usize| rank.checked_sub(self.plan.ranks.first);
        match action {
            MemberAction::Send(message) => self.wire.send(&message),
            MemberAction::Signal(rank, signal) => {
                if let Some(rank) = index(rank).and_then(|index| self.ranks.get(index)) {
                    rank.signal(signal);
                }
            }
            MemberAction::Observe(rank) => {
                let state = index(rank).and_then(|index| self.ranks.get(index)).and_then(RankIo::state);
                return Some(MemberInput::State(rank, state));
            }
            MemberAction::Start(plan, store) => {
                return Some(match self.start(&plan, &store) {
                    Ok(()) => MemberInput::Started,
                    Err(error) => {
                        MemberInput::NotStarted(error.to_string(), error.hint().map(|hint| hint.into_owned()))
                    }
                });
            }
        }
        None
    }

    /// Starts the ranks of this machine: the master's plan with the devices, files and folder of this one.
    fn start(&mut self, plan: &str, store: &str) -> Result<(), LaunchError> {
        let broken =
            |what: &str| MachinesError::MasterLost(format!("machine 0 sent {what} that cannot be read"));
        let masters: RunPlan = serde_json::from_str(plan).map_err(|_| broken("a plan"))?;
        let address: SocketAddr = store.parse().map_err(|_| broken("an address"))?;
        self.plan.take_task_of(masters);
        // Its address for questions is not asked here: machine 0 asks its own.
        let _ = nccl::prepare(&mut self.plan);
        let is_first = self.folder.is_none();
        let plan_file = match &self.folder {
            Some(_) => self.plan.write()?,
            None => self.folder.insert(run_folder::create(&mut self.plan, self.exist_ok)?).to_path_buf(),
        };
        let group =
            process::start(&self.plan, &plan_file, self.programs, Some(Store { address, socket: None }))?;
        let start = self.machine.start();
        self.ranks = group
            .into_iter()
            .enumerate()
            .map(|(rank, process)| RankIo::attach(start, rank, process, &self.sender))
            .collect();
        if is_first {
            let (number, machines) = self.place;
            let logs = self.plan.run_dir.join("logs");
            (self.say)(format!(
                "running as machine {number} of {machines}; the logs of its ranks are in {}; machine 0 shows the run",
                logs.display()
            ));
        }
        Ok(())
    }

    fn end(&mut self) -> Result<MemberEnd, LaunchError> {
        match self.machine.verdict() {
            Some(MemberVerdict::Over { status, how }) => Ok(MemberEnd { status: *status, how: how.clone() }),
            Some(MemberVerdict::MasterLost { silent, left }) => {
                let mut what = match silent {
                    Some(seconds) => {
                        format!("the connection to machine 0 was lost: it has sent nothing for {seconds} s")
                    }
                    None => "the connection to machine 0 was lost: it was closed".to_owned(),
                };
                if self.folder.is_some() {
                    what += "; the ranks of this machine were ended";
                }
                if !left.is_empty() {
                    let left: Vec<String> = left.iter().map(usize::to_string).collect();
                    what += &format!(", except rank {}, which no signal ends", left.join(", "));
                }
                Err(MachinesError::MasterLost(what).into())
            }
            None => Err(MachinesError::MasterLost("the connection to machine 0 was lost".to_owned()).into()),
        }
    }
}

//! The simulated world: a clock, machines and their connections, the processes of the ranks with their pipes
//! and collectives, a supervisor, agents, and a user. Only the state machines of the crate are real.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use yolo_plan::event::{Event, PROTOCOL};
use yolo_protocol::{Action, Config, End, Input, Signal, Supervisor, ToMaster, ToMember};

use crate::defects::{Defect, Saboteur};
use crate::history::History;
use crate::network::Agent;
use crate::process::Process;
use crate::program;
use crate::schedule::Schedule;

/// How long a simulated collective waits.
pub(crate) const COLLECTIVE: Duration = Duration::from_secs(90);
/// When the simulated user loses patience, after the last fault.
const PATIENCE: Duration = Duration::from_secs(1000);
pub(crate) const MILLISECOND: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Something that happens at a time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Happening {
    Main { rank: usize, life: u64, token: u64 },
    Beat { rank: usize, life: u64 },
    Timeout { rank: usize, life: u64, token: u64 },
    Die { rank: usize, life: u64, end: End },
    Deliver { life: u64, input: Input },
    Tick(u64),
    AgentTick { machine: usize, number: u64 },
    ToMember(usize, ToMember),
    ToMaster(usize, ToMaster),
    MasterGone(usize),
    MemberGone(usize),
    Beats(usize),
    Fault(usize),
    Foreground,
    Impatience,
}

/// The simulated world.
pub(crate) struct World<'a> {
    pub(crate) schedule: &'a Schedule,
    pub(crate) random: ChaCha8Rng,
    pub(crate) now: Duration,
    pub(crate) queue: BinaryHeap<Reverse<(Duration, u64)>>,
    pub(crate) happenings: std::collections::HashMap<u64, Happening>,
    pub(crate) sequence: u64,
    pub(crate) processes: Vec<Process>,
    pub(crate) supervisor: Option<Supervisor>,
    /// The machines other than the master.
    pub(crate) agents: Vec<Agent>,
    pub(crate) saboteur: Saboteur,
    pub(crate) tick: u64,
    pub(crate) start: u64,
    pub(crate) suspended: bool,
    /// How long the machines slept.
    pub(crate) slept: Duration,
    pub(crate) inbox: Vec<Input>,
    pub(crate) disk_full: bool,
    pub(crate) saved: bool,
    pub(crate) history: History,
}

impl<'a> World<'a> {
    pub(crate) fn new(schedule: &'a Schedule, defect: Option<Defect>) -> Self {
        let config = Config {
            others: false,
            machines: schedule.machines.clone(),
            silence: SECOND * 60,
            stall: SECOND * 20,
            limit: None,
            restarts: schedule.restarts,
        };
        let mut world = Self {
            schedule,
            random: ChaCha8Rng::seed_from_u64(schedule.seed ^ 0x5eed),
            now: Duration::ZERO,
            queue: BinaryHeap::new(),
            happenings: std::collections::HashMap::new(),
            sequence: 0,
            processes: Vec::new(),
            supervisor: Some(Supervisor::new(config, Duration::ZERO)),
            agents: (1..schedule.machines.len()).map(|machine| Agent::new(schedule, machine)).collect(),
            saboteur: Saboteur::new(defect, schedule.machines.len()),
            tick: 0,
            start: 0,
            suspended: false,
            slept: Duration::ZERO,
            inbox: Vec::new(),
            disk_full: false,
            saved: false,
            history: History::default(),
        };
        world.start_ranks();
        for machine in 1..schedule.machines.len() {
            world.at(Duration::ZERO, Happening::Beats(machine));
            world.at(Duration::ZERO, Happening::AgentTick { machine, number: 0 });
        }
        for (index, (at, _)) in schedule.faults.iter().enumerate() {
            world.at(*at, Happening::Fault(index));
        }
        let last = schedule.faults.last().map_or(Duration::ZERO, |(at, _)| *at);
        world.at(last + PATIENCE, Happening::Impatience);
        world.at(last + PATIENCE + SECOND * 10, Happening::Impatience);
        world.at(Duration::ZERO, Happening::Tick(0));
        world
    }

    /// Plays until the run has ended, and everything that belongs to it.
    pub(crate) fn run(mut self) -> History {
        while let Some(Reverse((at, key))) = self.queue.pop() {
            let Some(happening) = self.happenings.remove(&key) else { continue };
            self.now = self.now.max(at);
            self.step(happening);
            if self.is_over() {
                break;
            }
        }
        self.note_left(0..self.processes.len());
        self.history
    }

    /// Whether nothing that matters can happen any more.
    fn is_over(&self) -> bool {
        let ended = self.history.verdict.as_ref().map(|(at, _)| *at).or(self.history.supervisor_killed);
        // A run that goes on after the user has lost patience never ends.
        let Some(ended) = ended else { return self.now > SECOND * 20_000 };
        let alone = self.history.verdict.is_some() && self.agents.is_empty();
        alone
            || (self.agents.iter().all(|agent| agent.member.is_none() || agent.done)
                && self.processes.iter().all(|rank| !rank.runs() || rank.unkillable))
            || self.now > ended + self.slept + SECOND * 500
    }

    /// Remembers the ranks of these that still run.
    pub(crate) fn note_left(&mut self, ranks: std::ops::Range<usize>) {
        for rank in ranks {
            let left = (rank, !self.processes[rank].unkillable);
            if self.processes[rank].runs() && !self.history.left.contains(&left) {
                self.history.left.push(left);
            }
        }
    }

    pub(crate) fn log(&mut self, text: impl FnOnce() -> String) {
        // Building the texts would take most of the time.
        if std::env::var_os("YOLO_SIMULATION_SEED").is_some() {
            let line = format!("{:9.3} {}", self.now.as_secs_f64(), text());
            self.history.log.push(line);
        }
    }

    pub(crate) fn at(&mut self, at: Duration, happening: Happening) {
        self.sequence += 1;
        self.happenings.insert(self.sequence, happening);
        self.queue.push(Reverse((at, self.sequence)));
    }

    pub(crate) fn after(&mut self, wait: Duration, happening: Happening) {
        self.at(self.now + wait, happening);
    }

    pub(crate) fn start_ranks(&mut self) {
        self.start += 1;
        self.processes = (0..self.schedule.ranks).map(|_| Process::new(self.start, self.now)).collect();
        self.launch(self.schedule.ranks_of(0));
        for machine in 1..self.schedule.machines.len() {
            let (start, plan, store) = (self.start as u32, String::new(), String::new());
            self.send_to_member(machine, ToMember::Start { start, plan, store });
        }
    }

    /// Starts the processes of these ranks.
    pub(crate) fn launch(&mut self, ranks: std::ops::Range<usize>) {
        for rank in ranks {
            let ops = program::of_rank(self.schedule, rank, &mut self.random).into_iter();
            self.processes[rank] = Process { started: true, ops, ..Process::new(self.start, self.now) };
            let hello = Event::Hello {
                protocol: PROTOCOL,
                version: String::new(),
                rank,
                pid: 0,
                device: "cpu".to_owned(),
                threads: 1,
            };
            self.send(rank, hello);
            self.continue_main(rank, MILLISECOND * 10);
            self.after(MILLISECOND, Happening::Beat { rank, life: self.start });
        }
    }

    pub(crate) fn continue_main(&mut self, rank: usize, wait: Duration) {
        self.processes[rank].token += 1;
        let Process { token, number: life, .. } = self.processes[rank];
        self.after(wait, Happening::Main { rank, life, token });
    }

    /// The process, if it is of this start and has not ended.
    pub(crate) fn alive(&self, rank: usize, life: u64) -> bool {
        self.processes[rank].number == life && self.processes[rank].runs()
    }

    pub(crate) fn step(&mut self, happening: Happening) {
        match happening {
            Happening::Main { rank, life, token } => {
                if self.alive(rank, life) && self.processes[rank].token == token && !self.processes[rank].hung
                {
                    if self.processes[rank].stopped {
                        self.processes[rank].held = true;
                    } else {
                        self.main_thread(rank);
                    }
                }
            }
            Happening::Beat { rank, life } if self.alive(rank, life) => self.beat(rank),
            Happening::Timeout { rank, life, token } => {
                let state = &self.processes[rank];
                if self.alive(rank, life)
                    && state.waiting
                    && state.token == token
                    && !state.stopped
                    && !state.hung
                {
                    self.fail(rank, "timed out waiting for another rank", true);
                }
            }
            Happening::Die { rank, life, end } if self.alive(rank, life) => self.die(rank, end),
            Happening::Beat { .. } | Happening::Die { .. } => {}
            Happening::Deliver { life, input } if life == self.start => self.deliver(input),
            Happening::Deliver { .. } => {}
            Happening::AgentTick { machine, number } => self.tick_agent(machine, number),
            Happening::ToMember(machine, message) => self.arrive_at_member(machine, message),
            Happening::ToMaster(machine, message) => self.arrive_at_master(machine, message),
            Happening::MasterGone(machine) => self.master_gone(machine),
            Happening::MemberGone(machine) => self.member_gone(machine),
            Happening::Beats(machine) => self.beats(machine),
            Happening::Tick(number) if number == self.tick && !self.suspended => {
                self.tell_supervisor(Input::Tick)
            }
            Happening::Tick(_) => {}
            Happening::Fault(index) => self.fault(self.schedule.faults[index].1),
            Happening::Foreground => self.foreground(),
            Happening::Impatience => {
                self.history.impatient = true;
                self.signal(Signal::Interrupt);
            }
        }
    }

    /// Sends an event through the pipe of a rank.
    pub(crate) fn send(&mut self, rank: usize, event: Event) {
        let late = match self.schedule.latency {
            Duration::ZERO => Duration::ZERO,
            most => most.mul_f64(self.random.random_range(0.0..1.0)),
        };
        let state = &mut self.processes[rank];
        state.delivered = state.delivered.max(self.now + late);
        let (at, life) = (state.delivered, state.number);
        self.at(at, Happening::Deliver { life, input: Input::Event(rank, event) });
    }

    pub(crate) fn tell_supervisor(&mut self, input: Input) {
        if self.suspended {
            self.inbox.push(input);
            return;
        }
        let interrupted = !self.history.signals.is_empty();
        for (at, input) in self.saboteur.input(self.now, input, interrupted) {
            let Some(supervisor) = &mut self.supervisor else { return };
            let actions = supervisor.handle(at, input);
            let verdict = supervisor.verdict().cloned();
            let wait = supervisor.wake_in();
            self.tick += 1;
            if verdict.is_none() {
                self.after(wait, Happening::Tick(self.tick));
            }
            let done = self.history.finished.is_some();
            for action in self.saboteur.actions(actions, done) {
                self.act(action);
            }
            if let Some(verdict) = verdict.filter(|_| self.history.verdict.is_none()) {
                self.log(|| format!("verdict: {verdict:?}"));
                self.history.verdict = Some((self.now, self.saboteur.verdict(verdict)));
                self.note_left(self.schedule.ranks_of(0));
                for machine in 1..self.schedule.machines.len() {
                    self.send_to_member(machine, ToMember::Over { status: 0, how: String::new() });
                }
            }
        }
    }

    pub(crate) fn act(&mut self, action: Action) {
        self.log(|| format!("supervisor: {action:?}"));
        let machine_of = |rank| self.schedule.machine_of(rank);
        match action {
            Action::Signal(rank, signal) if machine_of(rank) > 0 => {
                self.send_to_member(machine_of(rank), ToMember::Signal { rank, signal });
            }
            Action::Signal(rank, signal) => self.signal_rank(rank, signal),
            Action::Observe(rank) if machine_of(rank) > 0 => {
                self.send_to_member(machine_of(rank), ToMember::Observe { rank });
            }
            Action::Observe(rank) => {
                let state = self.processes[rank].state();
                self.tell_supervisor(Input::State(rank, Some(state)));
            }
            Action::Disconnect(machine) => self.disconnect(machine),
            Action::SuspendSelf => self.suspended = true,
            Action::Restart { .. } if self.saved => {
                self.history.restarts += 1;
                self.start_ranks();
                self.tell_supervisor(Input::Restarted);
            }
            Action::Restart { .. } => self.tell_supervisor(Input::NotRestarted),
            Action::Notice(notice) => self.history.notices.push((self.now, notice)),
        }
    }
}

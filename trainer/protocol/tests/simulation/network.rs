//! The machines other than the master, and their connections to it: messages that take time, connections
//! that break or fall silent, agents that are killed, and machines that lose their power.

use std::time::Duration;

use rand::RngExt as _;
use yolo_protocol::{End, Input, Member, MemberAction, MemberInput, Signal, ToMaster, ToMember};

use crate::schedule::{Fault, Schedule};
use crate::world::{Happening, MILLISECOND, SECOND, World};

const SIGKILL: i32 = 9;

/// A machine other than the master.
pub(crate) struct Agent {
    /// `None` once it was killed.
    pub(crate) member: Option<Member>,
    /// Whether the run is over for it.
    pub(crate) done: bool,
    tick: u64,
    /// Whether the connection is open at the ends of the master and of the machine.
    open: [bool; 2],
    /// Whether the machine is cut off from all others.
    cut: bool,
    /// Nothing arrives before this time.
    held: Duration,
    /// When the last message arrives at the master and at the machine. Messages keep their order.
    last: [Duration; 2],
}

impl Agent {
    pub(crate) fn new(schedule: &Schedule, machine: usize) -> Self {
        let ranks = schedule.ranks_of(machine);
        Self {
            member: Some(Member::new(ranks.start, ranks.len(), Duration::ZERO)),
            done: false,
            tick: 0,
            open: [true; 2],
            cut: false,
            held: Duration::ZERO,
            last: [Duration::ZERO; 2],
        }
    }
}

/// When the system gives up a connection whose other end does not answer.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// The ends of a connection.
const MASTER: usize = 0;
const MEMBER: usize = 1;

impl World<'_> {
    /// When something that is sent now arrives at this end; `None` if it never does.
    fn arrival(&mut self, machine: usize, end: usize) -> Option<Duration> {
        let late = match self.schedule.latency {
            Duration::ZERO => MILLISECOND,
            most => most.mul_f64(self.random.random_range(0.0..1.0)),
        };
        let agent = &mut self.agents[machine - 1];
        if !agent.open[1 - end] || agent.cut {
            return None;
        }
        agent.last[end] = agent.last[end].max(self.now + late).max(agent.held);
        Some(agent.last[end])
    }

    pub(crate) fn send_to_member(&mut self, machine: usize, message: ToMember) {
        if let Some(at) = self.arrival(machine, MEMBER) {
            self.at(at, Happening::ToMember(machine, message));
        }
    }

    fn send_to_master(&mut self, machine: usize, message: ToMaster) {
        if let Some(at) = self.arrival(machine, MASTER) {
            self.at(at, Happening::ToMaster(machine, message));
        }
    }

    /// One end of the connection closes it.
    pub(crate) fn close(&mut self, machine: usize, by_master: bool) {
        let (own, other) = if by_master { (MASTER, MEMBER) } else { (MEMBER, MASTER) };
        if let Some(at) = self.arrival(machine, other) {
            let gone =
                if by_master { Happening::MasterGone(machine) } else { Happening::MemberGone(machine) };
            self.at(at, gone);
        }
        self.agents[machine - 1].open[own] = false;
    }

    /// The master gives a machine up.
    pub(crate) fn disconnect(&mut self, machine: usize) {
        if self.agents[machine - 1].open[MASTER] {
            self.close(machine, true);
        }
    }

    /// Heartbeats of both ends. Those of a master that is suspended stop.
    pub(crate) fn beats(&mut self, machine: usize) {
        if self.supervisor.is_some() && !self.suspended && self.history.verdict.is_none() {
            self.send_to_member(machine, ToMember::Beat);
        }
        if self.agents[machine - 1].member.is_some() && !self.agents[machine - 1].done {
            self.send_to_master(machine, ToMaster::Beat);
        }
        self.after(SECOND, Happening::Beats(machine));
    }

    pub(crate) fn arrive_at_member(&mut self, machine: usize, message: ToMember) {
        if self.agents[machine - 1].open[MEMBER] && !self.agents[machine - 1].cut {
            self.tell_member(machine, MemberInput::Message(message));
        }
    }

    pub(crate) fn master_gone(&mut self, machine: usize) {
        if std::mem::replace(&mut self.agents[machine - 1].open[MEMBER], false) {
            self.tell_member(machine, MemberInput::Closed);
        }
    }

    pub(crate) fn member_gone(&mut self, machine: usize) {
        if std::mem::replace(&mut self.agents[machine - 1].open[MASTER], false) {
            self.tell_supervisor(Input::Closed(machine));
        }
    }

    pub(crate) fn arrive_at_master(&mut self, machine: usize, message: ToMaster) {
        let agent = &self.agents[machine - 1];
        if !agent.open[MASTER] || agent.cut {
            return;
        }
        self.tell_supervisor(Input::Heard(machine));
        let now = self.start as u32;
        match message {
            ToMaster::Event { start, rank, event } if start == now => {
                self.tell_supervisor(Input::Event(rank, event));
            }
            ToMaster::Ended { start, rank, end } if start == now => {
                self.tell_supervisor(Input::Ended(rank, end));
            }
            ToMaster::State { start, rank, state } if start == now => {
                self.tell_supervisor(Input::State(rank, state));
            }
            ToMaster::Signal { signal } => self.signal(signal),
            _ => {}
        }
    }

    /// What a rank reports goes to its supervisor or agent.
    pub(crate) fn deliver(&mut self, input: Input) {
        let (rank, for_member) = match &input {
            Input::Event(rank, event) => (*rank, MemberInput::Event(*rank, event.clone())),
            Input::Ended(rank, end) => (*rank, MemberInput::Ended(*rank, *end)),
            _ => return,
        };
        match self.schedule.machine_of(rank) {
            0 => self.tell_supervisor(input),
            machine => self.tell_member(machine, for_member),
        }
    }

    pub(crate) fn tick_agent(&mut self, machine: usize, number: u64) {
        if self.agents[machine - 1].tick == number {
            self.tell_member(machine, MemberInput::Tick);
        }
    }

    fn tell_member(&mut self, machine: usize, input: MemberInput) {
        let Some(input) = self.saboteur.member_input(input) else { return };
        let now = self.now;
        let agent = &mut self.agents[machine - 1];
        if agent.done {
            return;
        }
        let Some(member) = &mut agent.member else { return };
        let actions = member.handle(now, input);
        let verdict = member.verdict().cloned();
        let wait = member.wake_in();
        agent.tick += 1;
        let number = agent.tick;
        if verdict.is_none() {
            self.after(wait, Happening::AgentTick { machine, number });
        }
        for action in actions {
            self.act_for_member(machine, action);
        }
        if let Some(verdict) = verdict.filter(|_| !self.agents[machine - 1].done) {
            self.log(|| format!("machine {machine}: {verdict:?}"));
            self.history.members.push((machine, now, verdict));
            self.agents[machine - 1].done = true;
            self.close(machine, false);
        }
    }

    fn act_for_member(&mut self, machine: usize, action: MemberAction) {
        match action {
            MemberAction::Send(message) => self.send_to_master(machine, message),
            MemberAction::Start(..) => {
                self.launch(self.schedule.ranks_of(machine));
                self.tell_member(machine, MemberInput::Started);
            }
            MemberAction::Signal(rank, signal) => {
                self.log(|| format!("machine {machine}: rank {rank} gets {signal:?}"));
                self.signal_rank(rank, signal);
            }
            MemberAction::Observe(rank) => {
                let state = self.processes[rank].state();
                self.tell_member(machine, MemberInput::State(rank, Some(state)));
            }
        }
    }

    /// Whether the supervisor or the agent of a rank is there, and can be reached.
    pub(crate) fn has_agent(&self, rank: usize) -> bool {
        match self.schedule.machine_of(rank) {
            0 => true,
            machine => self.agents[machine - 1].member.is_some() && !self.agents[machine - 1].cut,
        }
    }

    /// Whether some machine is cut off, so that not all ranks can meet.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.agents.iter().any(|agent| agent.cut)
    }

    /// Whether two ranks notice each other's end.
    pub(crate) fn are_connected(&self, one: usize, other: usize) -> bool {
        let (one, other) = (self.schedule.machine_of(one), self.schedule.machine_of(other));
        let cut = |machine: usize| machine > 0 && self.agents[machine - 1].cut;
        one == other || !(cut(one) || cut(other))
    }

    pub(crate) fn machine_fault(&mut self, machine: usize, fault: Fault) {
        let agent = &mut self.agents[machine - 1];
        if agent.member.is_none() || agent.done || agent.cut || !agent.open[MEMBER] {
            return;
        }
        let ranks = self.schedule.ranks_of(machine);
        if matches!(fault, Fault::InterruptOn(_)) {
            self.tell_member(machine, MemberInput::Signal(Signal::Interrupt));
            self.history.asked_elsewhere.get_or_insert(self.now);
            return;
        }
        if let Fault::Delayed(_, seconds) = fault {
            agent.held = agent.held.max(self.now + SECOND * seconds as u32);
        }
        if self.supervisor.is_some() && self.history.verdict.is_none() {
            self.history.causes.push((self.now, ranks.start, fault));
        }
        match fault {
            Fault::AgentKilled(_) => {
                self.kill_agent(machine);
                self.orphan(ranks);
            }
            Fault::MachineGone(_) => {
                self.kill_agent(machine);
                self.agents[machine - 1].cut = true;
                for rank in ranks {
                    self.processes[rank].ended.get_or_insert(End::Signalled(SIGKILL));
                }
            }
            Fault::Cut(_) => {
                self.agents[machine - 1].cut = true;
                self.after(KEEPALIVE, Happening::MasterGone(machine));
                self.after(KEEPALIVE, Happening::MemberGone(machine));
            }
            Fault::Broken(_) => {
                self.close(machine, false);
                self.tell_member(machine, MemberInput::Closed);
            }
            _ => {}
        }
    }

    fn kill_agent(&mut self, machine: usize) {
        self.close(machine, false);
        self.agents[machine - 1].member = None;
        self.history.agents_killed.push((machine, self.now));
    }
}

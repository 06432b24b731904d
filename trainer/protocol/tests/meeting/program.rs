//! A simulated program that joins a run: it connects the production state machine to the simulated connections, and
//! plays what comes after.

use std::collections::VecDeque;
use std::time::Duration;

use yolo_protocol::ToMaster;
use yolo_protocol::meeting::{
    Fact, FromWaiting, Hello, JoinAction, JoinInput, Joining, MESSAGES, MeetingError, ToWaiting,
};

use crate::history::End;
use crate::schedule::{Fault, Program};
use crate::world::{Happening, Item, World};

/// How long an attempt to connect takes if nothing answers.
const CONNECT: Duration = Duration::from_secs(5);

/// A program that joins, or has joined.
#[derive(Debug, Default)]
pub(crate) struct Joiner {
    machine: Option<Joining>,
    connection: Option<u64>,
    /// Whether it got its part and prepares, or is ready.
    plans: bool,
    ready: bool,
    frozen: bool,
    /// Whether nothing comes from it or to it any more.
    pub(crate) unreachable: bool,
    /// What has arrived and was not looked at.
    inbox: VecDeque<JoinInput>,
    started: bool,
    ticks: u64,
}

/// What must be equal on all machines.
pub(crate) fn facts(epochs: &str) -> Vec<Fact> {
    let fact = |what: &str, value: &str| Fact { what: what.to_owned(), value: value.to_owned() };
    vec![fact("libtorch", "cpu"), fact("--epochs", epochs)]
}

fn hello(program: &Program, machines: usize) -> Hello {
    let Program { machine, ranks, fault, .. } = *program;
    Hello {
        yolo: if fault == Some(Fault::OtherVersion) { MESSAGES + 1 } else { MESSAGES },
        program: "1".to_owned(),
        machine,
        machines: if fault == Some(Fault::OtherCount) { machines + 1 } else { machines },
        host: format!("lab-{machine}"),
        ranks,
        facts: facts(if fault == Some(Fault::OtherOptions) { "4" } else { "3" }),
    }
}

impl World<'_> {
    fn program(&self, program: usize) -> &Program {
        &self.schedule.programs[program]
    }

    fn has_ended(&self, program: usize) -> bool {
        self.history.programs[program].is_some()
    }

    pub(crate) fn program_starts(&mut self, program: usize) {
        if self.has_ended(program) {
            return;
        }
        let hello = hello(self.program(program), self.schedule.machines);
        let joining = Joining::new(hello, "lab:29500".to_owned(), self.schedule.patience, self.now);
        self.joiners[program].machine = Some(joining);
        self.log(|| format!("program {program} starts"));
        self.tell(program, JoinInput::Tick);
    }

    /// Passes an input to a program that joins.
    fn tell(&mut self, program: usize, input: JoinInput) {
        if self.has_ended(program) {
            return;
        }
        let Some(input) = self.saboteur.join_input(input, self.joiners[program].connection.is_some()) else {
            return;
        };
        let now = self.now;
        let Some(machine) = &mut self.joiners[program].machine else { return };
        let actions = machine.handle(now, input);
        for action in actions {
            match action {
                JoinAction::Connect => self.program_connects(program),
                JoinAction::Send(hello) => {
                    if let Some(connection) = self.joiners[program].connection {
                        let line = serde_json::to_string(&hello).unwrap();
                        self.send_to_master(connection, Item::Line(line), true);
                    }
                }
                JoinAction::Notice(notice) => self.log(|| format!("program {program}: {notice:?}")),
            }
        }
        let Some(machine) = &self.joiners[program].machine else { return };
        match machine.result().cloned() {
            None => {
                let wait = machine.wake_in().max(Duration::from_millis(1));
                let joiner = &mut self.joiners[program];
                joiner.ticks += 1;
                let number = joiner.ticks;
                self.after(wait, Happening::Tick(program, number));
            }
            Some(Ok(layout)) => {
                self.joiners[program].machine = None;
                self.joiners[program].plans = true;
                self.log(|| format!("program {program} gets {layout:?}"));
                self.history.layouts[program] = Some(layout);
                self.after(self.program(program).plans, Happening::Planned(program));
            }
            Some(Err(error)) => self.leave(program, End::Failed(error)),
        }
    }

    pub(crate) fn program_ticks(&mut self, program: usize, number: u64) {
        let joiner = &self.joiners[program];
        if joiner.ticks == number && !joiner.frozen {
            self.tell(program, JoinInput::Tick);
        }
    }

    fn program_connects(&mut self, program: usize) {
        if self.joiners[program].unreachable || self.master.gone {
            self.after(CONNECT, Happening::Answer(program, false));
        } else {
            let listens = self.master.listens();
            self.after(self.schedule.latency * 2, Happening::Answer(program, listens));
        }
    }

    pub(crate) fn program_is_answered(&mut self, program: usize, reached: bool) {
        if self.has_ended(program) {
            return;
        }
        // The port may have been closed meanwhile.
        let input = if reached && self.master.listens() {
            self.joiners[program].connection = Some(self.connect(Some(program)));
            JoinInput::Connected
        } else {
            JoinInput::Unreachable("connection refused".to_owned())
        };
        self.take(program, input);
    }

    pub(crate) fn program_hears(&mut self, program: usize, item: Item) {
        if self.has_ended(program) {
            return;
        }
        match item {
            Item::Line(line) => self.take(program, JoinInput::Line(line)),
            Item::Closed => self.take(program, JoinInput::Closed),
            Item::Start => {
                // The saboteur may let ranks start that nobody waits for.
                self.joiners[program].started = true;
                self.end_program(program, End::Started);
            }
        }
    }

    /// Puts an input into the inbox, and looks into it unless something else is to be done.
    fn take(&mut self, program: usize, input: JoinInput) {
        self.joiners[program].inbox.push_back(input);
        self.look(program);
    }

    fn look(&mut self, program: usize) {
        while !self.has_ended(program) && !self.joiners[program].frozen && !self.joiners[program].plans {
            let Some(input) = self.joiners[program].inbox.pop_front() else { return };
            match input {
                input if self.joiners[program].machine.is_some() => self.tell(program, input),
                JoinInput::Closed => self.leave(program, End::Failed(MeetingError::MasterLeft)),
                JoinInput::Line(line) => {
                    if let Ok(ToWaiting::Refused { message, hint }) = serde_json::from_str(&line) {
                        self.leave(program, End::Failed(MeetingError::Refused { message, hint }));
                    }
                }
                _ => {}
            }
        }
    }

    pub(crate) fn program_has_planned(&mut self, program: usize) {
        if self.has_ended(program) {
            return;
        }
        if self.joiners[program].frozen {
            // Later.
            self.after(Duration::from_secs(1), Happening::Planned(program));
            return;
        }
        self.joiners[program].plans = false;
        self.joiners[program].ready = true;
        let Some(connection) = self.joiners[program].connection else { return };
        let fault = self.program(program).fault;
        if fault == Some(Fault::CannotStart) {
            let failed = FromWaiting::Failed { message: "no memory".to_owned(), hint: None };
            self.send_to_master(connection, Item::Line(serde_json::to_string(&failed).unwrap()), false);
            self.leave(program, End::CouldNotStart);
            return;
        }
        let mut lines = Vec::new();
        if fault == Some(Fault::InterruptedWhenReady) {
            let signal = ToMaster::Signal { signal: yolo_protocol::Signal::Interrupt };
            lines.push(serde_json::to_string(&signal).unwrap());
        }
        lines.push(serde_json::to_string(&FromWaiting::Ready { backend: None, data: Vec::new() }).unwrap());
        for line in lines {
            self.send_to_master(connection, Item::Line(line), false);
        }
        self.look(program);
    }

    pub(crate) fn program_fault(&mut self, program: usize) {
        if self.has_ended(program) {
            return;
        }
        let fault = self.program(program).fault;
        self.log(|| format!("program {program}: {fault:?}"));
        let connection = self.joiners[program].connection;
        match fault {
            Some(Fault::Killed(_)) => self.leave(program, End::Killed),
            Some(Fault::Gone(_)) => {
                self.joiners[program].unreachable = true;
                connection.into_iter().for_each(|connection| self.lose(connection));
                self.end_program(program, End::Killed);
            }
            Some(Fault::Cut(_)) => {
                self.joiners[program].unreachable = true;
                connection.into_iter().for_each(|connection| self.lose(connection));
            }
            Some(Fault::Suspended(_, time)) => {
                self.joiners[program].frozen = true;
                self.after(time, Happening::Thaws(program));
            }
            _ => {}
        }
    }

    pub(crate) fn program_thaws(&mut self, program: usize) {
        self.joiners[program].frozen = false;
        self.look(program);
        if self.joiners[program].machine.is_some() {
            self.tell(program, JoinInput::Tick);
        }
    }

    /// A program ends, and the system closes its connection.
    fn leave(&mut self, program: usize, end: End) {
        if let Some(connection) = self.joiners[program].connection {
            self.send_to_master(connection, Item::Closed, false);
        }
        self.end_program(program, end);
    }
}

//! The simulated master: it connects the production state machines to the simulated connections, and plays what is
//! between and after them.

use std::collections::VecDeque;
use std::time::Duration;

use yolo_base::Hint as _;
use yolo_protocol::meeting::{
    Arrival, GatherAction, GatherInput, GatherNotice, Gathering, Master as Own, MeetingError, PrepareInput,
    Preparing, ToWaiting,
};

use crate::history::End;
use crate::program::facts;
use crate::schedule::MasterFault;
use crate::world::{Happening, Item, World};

/// What has arrived at the port.
#[derive(Debug)]
enum Heard {
    Arrived(u64, Option<String>),
    Line(u64, String),
    Closed(u64),
}

#[derive(Debug, Default)]
enum Stage {
    /// The port is closed.
    #[default]
    Before,
    /// Something else is done first.
    Opened,
    Gathering(Gathering),
    Planning(Vec<Arrival>),
    Preparing(Preparing, Vec<Arrival>),
    /// The ranks are started.
    Runs,
    Over,
}

/// The master.
#[derive(Debug, Default)]
pub(crate) struct Master {
    stage: Stage,
    inbox: VecDeque<Heard>,
    frozen: bool,
    pub(crate) gone: bool,
    /// When it was suspended.
    frozen_at: Duration,
    ticks: u64,
}

impl Master {
    /// Whether the system accepts connections.
    pub(crate) fn listens(&self) -> bool {
        !self.gone && !matches!(self.stage, Stage::Before | Stage::Over)
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen
    }
}

impl World<'_> {
    pub(crate) fn master_opens(&mut self) {
        if self.history.master.is_none() {
            self.master.stage = Stage::Opened;
        }
    }

    pub(crate) fn master_looks(&mut self) {
        if self.history.master.is_some() {
            return;
        }
        if self.master.frozen {
            self.after(Duration::from_millis(100), Happening::MasterLooks);
            return;
        }
        let own = Own {
            host: "lab-0".to_owned(),
            program: "1".to_owned(),
            machines: self.schedule.machines,
            facts: facts("3"),
        };
        self.log(|| "the master looks at its port".to_owned());
        let gathering = Gathering::new(own, self.schedule.patience, self.now);
        self.master.stage = Stage::Gathering(gathering);
        self.gather(GatherInput::Tick);
        self.look_into_inbox();
    }

    pub(crate) fn arrives(&mut self, connection: u64, line: Option<String>) {
        if self.history.master.as_ref().is_some_and(|(_, end)| *end != End::Started) {
            return;
        }
        self.master.inbox.push_back(Heard::Arrived(connection, line));
        self.look_into_inbox();
    }

    pub(crate) fn master_hears(&mut self, connection: u64, item: Item) {
        self.master.inbox.push_back(match item {
            Item::Line(line) => Heard::Line(connection, line),
            Item::Closed | Item::Start => Heard::Closed(connection),
        });
        self.look_into_inbox();
    }

    fn look_into_inbox(&mut self) {
        while !self.master.frozen {
            let waits = matches!(self.master.stage, Stage::Before | Stage::Opened | Stage::Planning(_));
            let Some(heard) = (!waits).then(|| self.master.inbox.pop_front()).flatten() else { return };
            match (&self.master.stage, heard) {
                (Stage::Gathering(_), Heard::Arrived(connection, line)) => {
                    self.begin_to_beat(connection);
                    let from = "10.0.0.9".to_owned();
                    self.gather(GatherInput::Arrived { connection, from, line });
                }
                (Stage::Gathering(_), Heard::Closed(connection)) => {
                    self.gather(GatherInput::Closed(connection));
                }
                (Stage::Preparing(..), Heard::Line(connection, line)) => {
                    self.prepare(PrepareInput::Line(connection, line));
                }
                (Stage::Preparing(..), Heard::Closed(connection)) => {
                    self.prepare(PrepareInput::Closed(connection));
                }
                (Stage::Preparing(..) | Stage::Runs, Heard::Arrived(connection, _)) => {
                    let message = "the run has begun with all its machines".to_owned();
                    self.say(connection, &ToWaiting::Refused { message, hint: None });
                    self.hang_up(connection);
                }
                _ => {}
            }
        }
    }

    pub(crate) fn master_ticks(&mut self, number: u64) {
        if self.master.ticks != number || self.master.frozen {
            return;
        }
        match self.master.stage {
            Stage::Gathering(_) => self.gather(GatherInput::Tick),
            Stage::Preparing(..) => self.prepare(PrepareInput::Tick),
            _ => {}
        }
    }

    fn tick_in(&mut self, wait: Duration) {
        self.master.ticks += 1;
        let number = self.master.ticks;
        self.after(wait.max(Duration::from_millis(1)), Happening::MasterTick(number));
    }

    fn gather(&mut self, input: GatherInput) {
        for input in self.saboteur.gather_input(input) {
            self.gather_one(self.now, input);
        }
        if self.saboteur.waits_for_nobody() {
            self.gather_one(self.now + Duration::from_secs(2), GatherInput::Tick);
        }
    }

    fn gather_one(&mut self, now: Duration, input: GatherInput) {
        let Stage::Gathering(machine) = &mut self.master.stage else { return };
        let actions = machine.handle(now, input);
        let (result, wait) = (machine.result().cloned(), machine.wake_in());
        for action in self.saboteur.gather_actions(actions) {
            match action {
                GatherAction::Send(connection, message) => self.say(connection, &message),
                GatherAction::Dismiss(connection, message) => {
                    self.say(connection, &message);
                    self.hang_up(connection);
                }
                GatherAction::Close(connection) => self.hang_up(connection),
                GatherAction::Notice(notice) => {
                    match &notice {
                        GatherNotice::Joined { machine, .. } => {
                            self.history.joined.push((*machine, self.now));
                        }
                        GatherNotice::Left { machine, .. } => {
                            self.history.joined.retain(|(joined, _)| joined != machine);
                        }
                        _ => {}
                    }
                    self.log(|| format!("master: {notice:?}"));
                }
            }
        }
        match result {
            None => self.tick_in(wait),
            Some(Ok(arrivals)) => {
                self.log(|| "the master has all machines".to_owned());
                self.history.complete = Some(self.now);
                self.master.stage = Stage::Planning(arrivals);
                self.after(self.schedule.plans, Happening::MasterPlanned);
            }
            Some(Err(error)) => self.end_master(End::Failed(error)),
        }
    }

    pub(crate) fn master_has_planned(&mut self) {
        if self.master.frozen {
            self.after(Duration::from_millis(100), Happening::MasterPlanned);
            return;
        }
        let Stage::Planning(arrivals) = &self.master.stage else { return };
        let arrivals = arrivals.clone();
        if self.schedule.master_fault == Some(MasterFault::CannotPlan) {
            let error =
                MeetingError::Refused { message: "the batch cannot be divided".to_owned(), hint: None };
            for member in &arrivals {
                let hint = error.hint().map(|hint| hint.into_owned());
                self.say(member.connection, &ToWaiting::Refused { message: error.to_string(), hint });
            }
            self.end_master(End::Failed(error));
            return;
        }
        let (machine, layouts) = Preparing::new(
            ("lab-0", &[]),
            self.schedule.own_ranks,
            &arrivals,
            None,
            self.schedule.patience,
            self.now,
        );
        let wait = machine.wake_in();
        self.master.stage = Stage::Preparing(machine, arrivals);
        layouts.iter().for_each(|(connection, message)| self.say(*connection, message));
        self.tick_in(wait);
        self.look_into_inbox();
    }

    fn prepare(&mut self, input: PrepareInput) {
        let Some(input) = self.saboteur.prepare_input(input) else { return };
        let now = self.now;
        let Stage::Preparing(machine, arrivals) = &mut self.master.stage else { return };
        let messages = machine.handle(now, input);
        let (result, wait, arrivals) = (machine.result(None), machine.wake_in(), arrivals.clone());
        messages.iter().for_each(|(connection, message)| self.say(*connection, message));
        match result {
            None => self.tick_in(wait),
            Some(Ok(_)) => {
                arrivals.iter().for_each(|member| self.send_to_program(member.connection, Item::Start));
                self.log(|| "the run begins".to_owned());
                self.history.master = Some((self.now, End::Started));
                self.master.stage = Stage::Runs;
            }
            Some(Err(error)) => self.end_master(End::Failed(error)),
        }
    }

    pub(crate) fn master_fault(&mut self) {
        if self.history.master.is_some() {
            return;
        }
        let fault = self.schedule.master_fault;
        self.log(|| format!("master: {fault:?}"));
        match fault {
            Some(MasterFault::Killed(_)) => self.end_master(End::Killed),
            Some(MasterFault::Gone(_)) => {
                let open: Vec<u64> = self.connections.keys().copied().collect();
                open.into_iter().for_each(|connection| self.lose(connection));
                self.master.gone = true;
                self.end_master(End::Killed);
            }
            Some(MasterFault::Suspended(_, time)) => {
                (self.master.frozen, self.master.frozen_at) = (true, self.now);
                self.after(time, Happening::MasterThaws);
            }
            Some(MasterFault::CannotPlan) | None => {}
        }
    }

    pub(crate) fn master_thaws(&mut self) {
        self.master.frozen = false;
        if self.saboteur.counts_suspended_time() {
            let mut at = self.master.frozen_at;
            while at < self.now {
                at += Duration::from_secs(1);
                self.gather_one(at.min(self.now), GatherInput::Tick);
            }
        }
        self.look_into_inbox();
        let number = self.master.ticks;
        self.master_ticks(number);
    }

    /// The master ends, and the system closes all connections.
    fn end_master(&mut self, end: End) {
        self.log(|| format!("the master ends: {end:?}"));
        self.history.master = Some((self.now, end));
        self.master.stage = Stage::Over;
        let open: Vec<u64> = self.connections.keys().copied().collect();
        open.into_iter().for_each(|connection| self.hang_up(connection));
    }
}

//! The master waits for the other machines: it lets in those that belong to the run, refuses others, each with a
//! message and without harm to the run, and compares all of them with itself.

use std::time::Duration;

use serde_json::Value;
use yolo_base::Hint as _;

use super::error::MeetingError;
use super::fact::{Fact, first_difference};
use super::messages::{Hello, MESSAGES, ToWaiting};
use super::names::named;
use crate::clock::{Clock, LONGEST_WAIT};

/// Ranks that one machine can have.
const MOST_RANKS: usize = 1024;
/// Letters of what a stranger calls itself that are shown.
const SHOWN: usize = 64;
/// How long a machine whose number is taken waits for the end of the other one. Its user may have ended that one and
/// started this one before the master looked at its port, and the news of the end comes after both.
const SETTLE: Duration = Duration::from_secs(2);
/// Time between notices about machines that are missing.
const REMINDER: Duration = Duration::from_secs(10);

/// What to do about numbers of machines that do not fit together.
const NUMBERS: &str =
    "give each machine a number of its own in --node-rank: 0 where --master-addr is, then 1, 2 and so on";
/// What to do about programs that do not fit together.
const SAME_RELEASE: &str = "install the same release on all machines";

/// The master, as the others see it.
#[derive(Debug, Clone)]
pub struct Master {
    /// Its name.
    pub host: String,
    /// The version of its program.
    pub program: String,
    /// Machines of the run, itself included.
    pub machines: usize,
    /// What must be equal on all.
    pub facts: Vec<Fact>,
}

/// Something that happens while the master waits. Connections have numbers that are never used again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GatherInput {
    /// Something has connected from an address.
    Arrived {
        /// The number of the connection.
        connection: u64,
        /// The address.
        from: String,
        /// Its first line; `None` if it sent none in time.
        line: Option<String>,
    },
    /// A connection was closed.
    Closed(u64),
    /// Time passed.
    Tick,
}

/// Something that the master wants done.
#[derive(Debug, Clone, PartialEq)]
pub enum GatherAction {
    /// Send a message.
    Send(u64, ToWaiting),
    /// Send a last message, and close the connection.
    Dismiss(u64, ToWaiting),
    /// Close a connection without a word.
    Close(u64),
    /// Tell the user.
    Notice(GatherNotice),
}

/// What the user of the master is told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of machines and connections")]
pub enum GatherNotice {
    /// These machines are missing.
    Waiting(Vec<usize>),
    /// A machine has joined.
    Joined { machine: usize, host: String, ranks: usize },
    /// A machine that had joined has left.
    Left { machine: usize, host: String },
    /// Something connected that is not `yolo`.
    Stranger { from: String },
    /// A machine was refused.
    Refused { from: String, message: String },
}

/// A machine that has joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// Its connection.
    pub connection: u64,
    /// Its number, from 1.
    pub machine: usize,
    /// Its name.
    pub host: String,
    /// The number of its ranks.
    pub ranks: usize,
    facts: Vec<Fact>,
}

/// How the waiting ended: all other machines, in the order of their numbers, or an error that all were told.
pub type Gathered = Result<Vec<Arrival>, MeetingError>;

/// A machine whose number is taken, unless the other one leaves until this time.
#[derive(Debug, Clone)]
struct Twin {
    until: Duration,
    connection: u64,
    from: String,
    hello: Hello,
}

/// Waits for the machines of a run.
#[derive(Debug, Clone)]
pub struct Gathering {
    clock: Clock,
    own: Master,
    patience: Duration,
    reminder: Duration,
    members: Vec<Option<Arrival>>,
    /// Those that gave a number that is taken.
    twins: Vec<Twin>,
    actions: Vec<GatherAction>,
    result: Option<Gathered>,
}

impl Gathering {
    /// Waits for at most `patience`.
    pub fn new(own: Master, patience: Duration, now: Duration) -> Self {
        let mut clock = Clock::default();
        let reminder = clock.look(now);
        let members = vec![None; own.machines - 1];
        Self { clock, own, patience, reminder, members, twins: Vec::new(), actions: Vec::new(), result: None }
    }

    /// Takes what happened at `now`, a time that never goes back, and returns what to do.
    pub fn handle(&mut self, now: Duration, input: GatherInput) -> Vec<GatherAction> {
        self.clock.look(now);
        match input {
            GatherInput::Arrived { connection, from, line } => {
                self.welcome(connection, from, line.as_deref())
            }
            GatherInput::Closed(connection) => self.part(connection),
            GatherInput::Tick => {}
        }
        self.refuse_twins();
        if self.result.is_none() {
            self.conclude();
        }
        std::mem::take(&mut self.actions)
    }

    /// How long to wait for an input before passing a [`GatherInput::Tick`].
    pub fn wake_in(&self) -> Duration {
        let twin = self.twins.iter().map(|twin| twin.until).min().unwrap_or(Duration::MAX);
        let next = self.reminder.min(self.patience).min(twin);
        next.saturating_sub(self.clock.now()).min(LONGEST_WAIT)
    }

    /// How the waiting ended, once it has.
    pub fn result(&self) -> Option<&Gathered> {
        self.result.as_ref()
    }

    /// Ends the waiting, reminds of what is missing, or neither.
    fn conclude(&mut self) {
        let (now, missing) = (self.clock.now(), self.missing());
        // A machine that has a twin may be gone.
        if missing.is_empty() && !self.twins.is_empty() {
            return;
        }
        if missing.is_empty() {
            let all: Vec<Arrival> = self.members.iter().flatten().cloned().collect();
            match all.iter().find_map(|member| self.difference(member)) {
                Some(error) => self.fail(error),
                None => self.result = Some(Ok(all)),
            }
        } else if now >= self.patience {
            let (seconds, machines) = (self.patience.as_secs(), self.own.machines);
            self.fail(MeetingError::Missing { seconds, missing, machines });
        } else if now >= self.reminder {
            self.reminder = now + REMINDER;
            for member in self.members.iter().flatten() {
                let message = ToWaiting::Waiting { missing: missing.clone() };
                self.actions.push(GatherAction::Send(member.connection, message));
            }
            self.actions.push(GatherAction::Notice(GatherNotice::Waiting(missing)));
        }
    }

    fn missing(&self) -> Vec<usize> {
        let missing = self.members.iter().enumerate().filter(|(_, member)| member.is_none());
        missing.map(|(index, _)| index + 1).collect()
    }

    fn difference(&self, member: &Arrival) -> Option<MeetingError> {
        let other = (member.machine, member.host.as_str(), &member.facts[..]);
        first_difference((&self.own.host, &self.own.facts), other)
            .map(|difference| MeetingError::Differs(Box::new(difference)))
    }

    /// Tells all that there will be no run.
    fn fail(&mut self, error: MeetingError) {
        let hint = error.hint().map(|hint| hint.into_owned());
        let members = self.members.iter().flatten().map(|member| member.connection);
        for connection in members.chain(self.twins.iter().map(|twin| twin.connection)) {
            let refused = ToWaiting::Refused { message: error.to_string(), hint: hint.clone() };
            self.actions.push(GatherAction::Dismiss(connection, refused));
        }
        self.result = Some(Err(error));
    }

    /// Refuses those that have waited long enough for the end of another.
    fn refuse_twins(&mut self) {
        let now = self.clock.now();
        for Twin { connection, from, hello, .. } in
            self.twins.extract_if(.., |twin| twin.until <= now).collect::<Vec<_>>()
        {
            let host = printable(&hello.host);
            let there = self.members[hello.machine - 1].as_ref().map_or(&host, |member| &member.host);
            let taken = format!("--node-rank {} is taken", hello.machine);
            let message = match *there == host {
                true => format!("{taken}: a machine that is also called {host} has joined already"),
                false => format!("{taken}: {there} has joined already, and {host} gives the same number"),
            };
            self.refuse(connection, from, Objection { message, hint: NUMBERS });
        }
    }

    fn part(&mut self, connection: u64) {
        self.twins.retain(|twin| twin.connection != connection);
        let of_it = |member: &&mut Option<Arrival>| {
            member.as_ref().is_some_and(|member| member.connection == connection)
        };
        let Some(Arrival { machine, host, .. }) = self.members.iter_mut().find(of_it).and_then(Option::take)
        else {
            return;
        };
        self.actions.push(GatherAction::Notice(GatherNotice::Left { machine, host }));
        if let Some(index) = self.twins.iter().position(|twin| twin.hello.machine == machine) {
            let Twin { connection, hello, .. } = self.twins.remove(index);
            self.let_in(connection, hello);
        }
    }

    /// Lets a machine in, or tells it why not.
    fn welcome(&mut self, connection: u64, from: String, line: Option<&str>) {
        let hello: Value = line.and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default();
        let Some(messages) = hello.get("yolo").and_then(Value::as_u64) else {
            self.actions.push(GatherAction::Close(connection));
            self.actions.push(GatherAction::Notice(GatherNotice::Stranger { from }));
            return;
        };
        let program = printable(hello.get("program").and_then(Value::as_str).unwrap_or("unknown"));
        let hello: Option<Hello> = serde_json::from_value(hello).ok();
        let objection = match hello.filter(|_| messages == u64::from(MESSAGES)) {
            Some(hello) => match self.objection(&hello) {
                None if self.members[hello.machine - 1].is_some() => {
                    let until = self.clock.now() + SETTLE;
                    self.twins.push(Twin { until, connection, from, hello });
                    return;
                }
                None => return self.let_in(connection, hello),
                Some(objection) => objection,
            },
            None => Objection {
                message: format!(
                    "machine 0 runs yolo {}, and this machine runs yolo {program}, which cannot work together",
                    self.own.program
                ),
                hint: SAME_RELEASE,
            },
        };
        self.refuse(connection, from, objection);
    }

    fn refuse(&mut self, connection: u64, from: String, Objection { message, hint }: Objection) {
        let refused = ToWaiting::Refused { message: message.clone(), hint: Some(hint.to_owned()) };
        self.actions.push(GatherAction::Dismiss(connection, refused));
        self.actions.push(GatherAction::Notice(GatherNotice::Refused { from, message }));
    }

    fn let_in(&mut self, connection: u64, hello: Hello) {
        let Hello { machine, ranks, facts, .. } = hello;
        let host = printable(&hello.host);
        self.actions.push(GatherAction::Send(connection, ToWaiting::Waiting { missing: Vec::new() }));
        let joined = GatherNotice::Joined { machine, host: host.clone(), ranks };
        self.actions.push(GatherAction::Notice(joined));
        self.members[machine - 1] = Some(Arrival { connection, machine, host, ranks, facts });
    }

    /// Why a machine cannot take part.
    fn objection(&self, hello: &Hello) -> Option<Objection> {
        let Hello { machine, machines, ranks, .. } = hello;
        let (host, all) = (printable(&hello.host), self.own.machines);
        let (message, hint) = if *machines != all {
            let (own, other) = (named(0, &self.own.host), named(*machine, &host));
            (
                format!("--nnodes differs: {all} on {own}, {machines} on {other}"),
                "give all machines the same --nnodes, the number of them",
            )
        } else if !(1..=MOST_RANKS).contains(ranks) {
            (format!("{} has {ranks} ranks", named(*machine, &host)), SAME_RELEASE)
        } else if *machine == 0 || *machine >= all {
            (format!("--node-rank {machine} of {host} is not a number from 1 to {}", all - 1), NUMBERS)
        } else {
            return None;
        };
        Some(Objection { message, hint })
    }
}

/// Why a machine cannot take part, and what to do about it.
struct Objection {
    message: String,
    hint: &'static str,
}

/// What another machine calls itself, as it may go to a terminal.
fn printable(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(SHOWN).collect()
}

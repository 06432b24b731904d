//! A machine that is not the master joins a run: it connects, again and again until the master is there, says what
//! it has, and waits for its part of the ranks.

use std::time::Duration;

use yolo_plan::run::TrainTask;

use super::error::MeetingError;
use super::messages::{Hello, ToWaiting};
use crate::clock::LONGEST_WAIT;

/// Time between attempts to connect.
const RETRY: Duration = Duration::from_secs(1);
/// Time between notices about what this machine waits for.
const REMINDER: Duration = Duration::from_secs(10);
/// A master that sends nothing for this time is gone.
const SILENCE: Duration = Duration::from_secs(30);

/// Something that happens while a machine joins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JoinInput {
    /// The answer to [`JoinAction::Connect`]: there is a connection.
    Connected,
    /// The other answer: why there is none.
    Unreachable(String),
    /// The master sent a line.
    Line(String),
    /// The connection was closed.
    Closed,
    /// Time passed.
    Tick,
}

/// Something that a machine wants done.
#[derive(Debug, Clone, PartialEq)]
pub enum JoinAction {
    /// Connect to the master.
    Connect,
    /// Send a message to the master.
    Send(Hello),
    /// Tell the user.
    Notice(JoinNotice),
}

/// What the user of a machine is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JoinNotice {
    /// The master cannot be reached, and why.
    NoMaster(String),
    /// Something listens at the master's address, and says nothing yet.
    NotReady,
    /// The machine has joined.
    Joined,
    /// These machines are missing.
    Waiting(Vec<usize>),
}

/// The part of a machine, which the master tells when all are there.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// The number of its first rank.
    pub first: usize,
    /// Ranks on all machines.
    pub world_size: usize,
    /// The run that is resumed.
    pub resumed: Option<Box<TrainTask>>,
}

/// How joining ended.
pub type Joined = Result<Layout, MeetingError>;

/// What a machine is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It connects at this time.
    ConnectAt(Duration),
    /// It waits for the answer of the system.
    Connecting,
    /// It is connected.
    Connected { joined: bool },
}

/// Joins a run.
#[derive(Debug, Clone)]
pub struct Joining {
    hello: Hello,
    /// Of the master, as the user named it.
    address: String,
    patience: Duration,
    stage: Stage,
    /// Since when this stage lasts: connecting, then waiting.
    began: Duration,
    /// When the master was last heard, and when the user is told again that it is not there.
    heard: Duration,
    reminder: Duration,
    now: Duration,
    actions: Vec<JoinAction>,
    result: Option<Joined>,
}

impl Joining {
    /// Joins the run of the master at `address`. It tries to connect for `patience`, and waits as long for the
    /// first answer.
    pub fn new(hello: Hello, address: String, patience: Duration, now: Duration) -> Self {
        Self {
            hello,
            address,
            patience,
            stage: Stage::ConnectAt(now),
            began: now,
            heard: now,
            reminder: now,
            now,
            actions: Vec::new(),
            result: None,
        }
    }

    /// Takes what happened at `now`, a time that never goes back, and returns what to do.
    pub fn handle(&mut self, now: Duration, input: JoinInput) -> Vec<JoinAction> {
        self.now = now;
        if self.result.is_none() {
            match input {
                JoinInput::Connected => self.on_connected(),
                JoinInput::Unreachable(why) => self.on_unreachable(why),
                JoinInput::Line(line) => self.on_line(&line),
                JoinInput::Closed => self.result = Some(Err(MeetingError::MasterLeft)),
                JoinInput::Tick => self.on_time(),
            }
        }
        std::mem::take(&mut self.actions)
    }

    /// How long to wait for an input before passing a [`JoinInput::Tick`].
    pub fn wake_in(&self) -> Duration {
        let due = match self.stage {
            Stage::ConnectAt(at) => at,
            Stage::Connecting => return LONGEST_WAIT,
            Stage::Connected { .. } => self.heard + self.silence(),
        };
        due.saturating_sub(self.now).min(LONGEST_WAIT)
    }

    /// How it ended, once it has.
    pub fn result(&self) -> Option<&Joined> {
        self.result.as_ref()
    }

    /// Ends with what it has found.
    pub fn into_result(self) -> Option<Joined> {
        self.result
    }

    fn silence(&self) -> Duration {
        SILENCE.min(self.patience)
    }

    fn on_connected(&mut self) {
        self.stage = Stage::Connected { joined: false };
        (self.began, self.heard) = (self.now, self.now);
        self.actions.push(JoinAction::Send(self.hello.clone()));
    }

    fn on_unreachable(&mut self, why: String) {
        let tried = self.now.saturating_sub(self.began);
        if tried >= self.patience {
            let why = format!("{why}; tried for {} s", self.patience.as_secs());
            self.result = Some(Err(MeetingError::Unreachable { address: self.address.clone(), why }));
            return;
        }
        if self.now >= self.reminder {
            self.reminder = self.now + REMINDER;
            self.actions.push(JoinAction::Notice(JoinNotice::NoMaster(why)));
        }
        self.stage = Stage::ConnectAt(self.now + RETRY.min(self.patience - tried));
    }

    fn on_line(&mut self, line: &str) {
        self.heard = self.now;
        match serde_json::from_str(line) {
            Ok(ToWaiting::Beat) => {}
            Ok(ToWaiting::Waiting { missing }) => {
                if self.stage != (Stage::Connected { joined: true }) {
                    self.stage = Stage::Connected { joined: true };
                    self.actions.push(JoinAction::Notice(JoinNotice::Joined));
                }
                if !missing.is_empty() {
                    self.actions.push(JoinAction::Notice(JoinNotice::Waiting(missing)));
                }
            }
            Ok(ToWaiting::Refused { message, hint }) => {
                self.result = Some(Err(MeetingError::Refused { message, hint }));
            }
            Ok(ToWaiting::Layout { first, world_size, resumed }) => {
                self.result = Some(Ok(Layout { first, world_size, resumed }));
            }
            Err(_) => self.result = Some(Err(MeetingError::NoMaster { address: self.address.clone() })),
        }
    }

    fn on_time(&mut self) {
        match self.stage {
            Stage::ConnectAt(at) if at <= self.now => {
                self.stage = Stage::Connecting;
                self.actions.push(JoinAction::Connect);
            }
            Stage::ConnectAt(_) | Stage::Connecting => {}
            Stage::Connected { joined } => self.on_silence(joined),
        }
    }

    fn on_silence(&mut self, joined: bool) {
        if self.now.saturating_sub(self.heard) < self.silence() {
            return;
        }
        let waited = self.now.saturating_sub(self.began);
        // Before the master looks at its port, nobody answers there.
        if !joined && waited < self.patience {
            self.heard = self.now;
            self.actions.push(JoinAction::Notice(JoinNotice::NotReady));
            return;
        }
        let silent = if joined { self.silence() } else { waited };
        let (address, seconds) = (self.address.clone(), silent.as_secs());
        self.result = Some(Err(MeetingError::Silent { address, seconds }));
    }
}

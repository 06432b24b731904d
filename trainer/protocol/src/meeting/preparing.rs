//! The master tells each machine its ranks and waits until all can start. Nothing is started before.

use std::time::Duration;

use yolo_base::Hint as _;
use yolo_plan::backend::Backend;
use yolo_plan::run::TrainTask;

use super::error::MeetingError;
use super::fact::{Fact, first_difference};
use super::gathering::Arrival;
use super::messages::{FromWaiting, ToWaiting};
use crate::clock::{Clock, LONGEST_WAIT};
use crate::messages::ToMaster;

/// Something that happens while machines prepare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrepareInput {
    /// A machine sent a line on this connection.
    Line(u64, String),
    /// A connection was closed.
    Closed(u64),
    /// Time passed.
    Tick,
}

/// What each machine can do, and how the preparation ends.
#[derive(Debug, Clone)]
pub struct Preparing {
    clock: Clock,
    patience: Duration,
    /// The name of the master, and the facts about the data set of a run that it resumes.
    own: (String, Vec<Fact>),
    members: Vec<Arrival>,
    /// What those can use that are ready.
    backends: Vec<Option<Option<Backend>>>,
    result: Option<Result<(), MeetingError>>,
}

impl Preparing {
    /// Waits for at most `patience`. `host` is the name of the master, and `data` what must be equal about the
    /// data set of a resumed run. The messages are to be sent on the connections with these numbers.
    pub fn new(
        (host, data): (&str, &[Fact]),
        own_ranks: usize,
        members: &[Arrival],
        resumed: Option<&TrainTask>,
        patience: Duration,
        now: Duration,
    ) -> (Self, Vec<(u64, ToWaiting)>) {
        let world_size = own_ranks + members.iter().map(|member| member.ranks).sum::<usize>();
        let mut first = own_ranks;
        let layout = |member: &Arrival| {
            let resumed = resumed.cloned().map(Box::new);
            let message = ToWaiting::Layout { first, world_size, resumed };
            first += member.ranks;
            (member.connection, message)
        };
        let messages = members.iter().map(layout).collect();
        let mut clock = Clock::default();
        clock.look(now);
        let machine = Self {
            clock,
            patience,
            own: (host.to_owned(), data.to_vec()),
            backends: vec![None; members.len()],
            members: members.to_vec(),
            result: None,
        };
        (machine, messages)
    }

    /// Takes what happened at `now`, a time that never goes back, and returns what to send on which connections.
    pub fn handle(&mut self, now: Duration, input: PrepareInput) -> Vec<(u64, ToWaiting)> {
        self.clock.look(now);
        let error = match input {
            PrepareInput::Line(connection, line) => self.on_line(connection, &line).err(),
            PrepareInput::Closed(connection) => self
                .member(connection)
                .map(|(_, member)| MeetingError::MemberLeft(member.machine, member.host.clone())),
            PrepareInput::Tick => None,
        };
        if self.result.is_some() {
            return Vec::new();
        }
        let late = || self.clock.now() >= self.patience && self.backends.contains(&None);
        match error.or_else(|| late().then(|| MeetingError::Late(self.late()))) {
            Some(error) => self.fail(error),
            None => {
                if !self.backends.contains(&None) {
                    self.result = Some(Ok(()));
                }
                Vec::new()
            }
        }
    }

    /// How long to wait for an input before passing a [`PrepareInput::Tick`].
    pub fn wake_in(&self) -> Duration {
        self.patience.saturating_sub(self.clock.now()).min(LONGEST_WAIT)
    }

    /// The backend with which all machines can start, if `own` is that of the master; an error that all were told;
    /// or `None` if it is not known yet.
    pub fn result(&self, own: Option<Backend>) -> Option<Result<Option<Backend>, MeetingError>> {
        let all_alike = self.backends.iter().all(|backend| *backend == Some(own));
        let backend = if all_alike { own } else { Some(Backend::Gloo) };
        self.result.clone().map(|result| result.map(|()| backend))
    }

    fn member(&self, connection: u64) -> Option<(usize, &Arrival)> {
        self.members.iter().enumerate().find(|(_, member)| member.connection == connection)
    }

    /// Those that are not ready.
    fn late(&self) -> Vec<(usize, String)> {
        let late = self.members.iter().zip(&self.backends).filter(|(_, backend)| backend.is_none());
        late.map(|(member, _)| (member.machine, member.host.clone())).collect()
    }

    fn on_line(&mut self, connection: u64, line: &str) -> Result<(), MeetingError> {
        let Some((index, Arrival { machine, host, .. })) = self.member(connection) else { return Ok(()) };
        let (machine, host) = (*machine, host.clone());
        match serde_json::from_str(line) {
            Ok(FromWaiting::Beat) => Ok(()),
            Ok(FromWaiting::Ready { backend, data }) => {
                let (master, own) = &self.own;
                if let Some(difference) = first_difference((master, own), (machine, &host, &data)) {
                    return Err(MeetingError::Differs(Box::new(difference)));
                }
                self.backends[index] = Some(backend);
                Ok(())
            }
            Ok(FromWaiting::Failed { message, hint }) => {
                Err(MeetingError::CannotStart { machine, host, message, hint })
            }
            Err(_) => Err(match serde_json::from_str(line) {
                Ok(ToMaster::Signal { .. }) => MeetingError::MemberInterrupted(machine, host),
                _ => MeetingError::MemberGarbled(machine, host),
            }),
        }
    }

    /// Tells all that there will be no run.
    fn fail(&mut self, error: MeetingError) -> Vec<(u64, ToWaiting)> {
        let hint = error.hint().map(|hint| hint.into_owned());
        let refused = |member: &Arrival| {
            let message = ToWaiting::Refused { message: error.to_string(), hint: hint.clone() };
            (member.connection, message)
        };
        let messages = self.members.iter().map(refused).collect();
        self.result = Some(Err(error));
        messages
    }
}

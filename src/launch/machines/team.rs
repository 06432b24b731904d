//! The machines of a run, as the master knows them.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use yolo_base::Hint as _;
use yolo_base::format::list;
use yolo_plan::RunPlan;
use yolo_plan::backend::Backend;
use yolo_plan::run::{Part, TrainTask};
use yolo_protocol::{ToMaster, ToMember};

use super::error::MachinesError;
use super::facts::{Fact, Facts, compare, named};
use super::handshake::{FromWaiting, ToWaiting};
use super::place::Place;
use super::wire::Wire;

/// How long a message may take until the system has it.
const FLUSH: Duration = Duration::from_millis(500);

/// What arrives at the master's port, with the number of the connection.
pub(in crate::launch) enum Heard {
    /// Something has connected, and sent this first line; `None` if it sent none in time.
    Arrived(TcpStream, Option<String>),
    Line(u64, String),
    Closed(u64),
}

/// A machine that has joined.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) machine: usize,
    pub(super) host: String,
    pub(super) connection: u64,
    pub(super) ranks: usize,
    pub(super) facts: Vec<Fact>,
    pub(super) wire: Wire,
}

impl Remote {
    pub(super) fn refuse(&self, error: &MachinesError) {
        let hint = error.hint().map(|hint| hint.into_owned());
        self.wire.send(&ToWaiting::Refused { message: error.to_string(), hint });
    }
}

/// All machines of a run.
pub(crate) struct Team {
    address: SocketAddr,
    own_ranks: usize,
    /// In the order of their numbers, from 1.
    members: Vec<Remote>,
    heard: Option<Receiver<Heard>>,
}

impl Team {
    pub(super) fn new(
        address: SocketAddr,
        own_ranks: usize,
        members: impl Iterator<Item = Remote>,
        heard: Receiver<Heard>,
    ) -> Self {
        Self { address, own_ranks, members: members.collect(), heard: Some(heard) }
    }

    pub(super) fn members(&self) -> &[Remote] {
        &self.members
    }

    /// The address of the master on which the ranks' store is served.
    pub(in crate::launch) fn address(&self) -> IpAddr {
        self.address.ip()
    }

    /// The number of ranks on each machine.
    pub(in crate::launch) fn ranks(&self) -> Vec<usize> {
        std::iter::once(self.own_ranks).chain(self.members.iter().map(|member| member.ranks)).collect()
    }

    /// The part of the ranks that is on the master.
    pub(crate) fn own_part(&self) -> Part {
        let world_size = self.ranks().iter().sum();
        Part { first: 0, first_here: 0, here: self.own_ranks, world_size }
    }

    /// The machine of a rank.
    pub(in crate::launch) fn machine_of(&self, rank: usize) -> usize {
        let mut end = 0;
        let mut before = |ranks: &usize| {
            end += ranks;
            end <= rank
        };
        self.ranks().iter().take_while(|ranks| before(ranks)).count()
    }

    /// The ranks of a machine.
    pub(in crate::launch) fn ranks_of(&self, machine: usize) -> std::ops::Range<usize> {
        let ranks = self.ranks();
        let first = ranks[..machine].iter().sum();
        first..first + ranks[machine]
    }

    /// The host name of another machine.
    pub(in crate::launch) fn host(&self, machine: usize) -> &str {
        self.members.get(machine.wrapping_sub(1)).map_or("", |member| &member.host)
    }

    /// The machine of a connection.
    pub(in crate::launch) fn machines(&self) -> Vec<(u64, usize)> {
        self.members.iter().map(|member| (member.connection, member.machine)).collect()
    }

    /// What arrives, once.
    pub(in crate::launch) fn take_heard(&mut self) -> Option<Receiver<Heard>> {
        self.heard.take()
    }

    pub(in crate::launch) fn send(&self, machine: usize, message: &ToMember) {
        if let Some(member) = self.members.get(machine.wrapping_sub(1)) {
            member.wire.send(message);
        }
    }

    /// Waits until the machines were sent everything, before this process stops.
    pub(in crate::launch) fn flush(&self) {
        self.members.iter().for_each(|member| member.wire.flush(FLUSH));
    }

    /// Closes the connection to a machine.
    pub(in crate::launch) fn disconnect(&self, machine: usize) {
        if let Some(member) = self.members.get(machine.wrapping_sub(1)) {
            member.wire.close();
        }
    }

    /// Tells all machines to start their ranks of `plan`, which meet at `store`.
    pub(in crate::launch) fn start(&self, start: u32, plan: &RunPlan, store: SocketAddr) {
        let plan = serde_json::to_string(plan).unwrap_or_default();
        for member in &self.members {
            let (plan, store) = (plan.clone(), store.to_string());
            member.wire.send(&ToMember::Start { start, plan, store });
        }
    }

    /// Tells all machines that there will be no run.
    pub(crate) fn refuse(&self, error: &MachinesError) {
        self.members.iter().for_each(|member| member.refuse(error));
    }

    /// Tells each machine its part, and waits until all can start. `facts` are those of the master, and `resumed`
    /// is its task if it resumes a run. Returns the backend that all can use, if `own` is that of the master.
    ///
    /// # Errors
    /// When a machine cannot start, or has another data set than the resumed run. All are told.
    pub(crate) fn prepare(
        &mut self,
        own: Option<Backend>,
        facts: &Facts,
        resumed: Option<&TrainTask>,
    ) -> Result<Option<Backend>, MachinesError> {
        let world_size = self.ranks().iter().sum();
        for member in &self.members {
            let (first, resumed) = (self.ranks_of(member.machine).start, resumed.cloned().map(Box::new));
            member.wire.send(&ToWaiting::Layout { first, world_size, resumed });
        }
        let ready = self.wait_until_ready(own, &facts.later);
        if let Err(error) = &ready {
            self.refuse(error);
        }
        ready
    }

    fn wait_until_ready(
        &self,
        own: Option<Backend>,
        data: &[Fact],
    ) -> Result<Option<Backend>, MachinesError> {
        let deadline = Instant::now() + Place::patience();
        let mut backends = vec![None; self.members.len()];
        while backends.contains(&None) {
            let wait = deadline.saturating_duration_since(Instant::now());
            let heard = self.heard.as_ref().and_then(|heard| heard.recv_timeout(wait).ok());
            let (connection, line) = match heard {
                Some(Heard::Line(connection, line)) => (connection, Some(line)),
                Some(Heard::Closed(connection)) => (connection, None),
                Some(Heard::Arrived(stream, _)) => {
                    refuse_late(stream);
                    continue;
                }
                None => {
                    let late = self.members.iter().zip(&backends).filter(|(_, backend)| backend.is_none());
                    let late: Vec<String> =
                        late.map(|(member, _)| named(member.machine, &member.host)).collect();
                    return Err(MachinesError::Left(format!("{} did not get ready in time", list(&late))));
                }
            };
            let Some(index) = self.members.iter().position(|member| member.connection == connection) else {
                continue;
            };
            let name = named(index + 1, &self.members[index].host);
            let Some(line) = line else {
                return Err(MachinesError::Left(format!("{name} left before the run began")));
            };
            match serde_json::from_str(&line) {
                Ok(FromWaiting::Beat) => {}
                Ok(FromWaiting::Ready { backend, data: theirs }) => {
                    let other = (index + 1, self.members[index].host.as_str(), &theirs[..]);
                    compare((&host_name(), data), other)?;
                    backends[index] = Some(backend);
                }
                Ok(FromWaiting::Failed { message, hint }) => {
                    return Err(MachinesError::Refused {
                        message: format!("{name} cannot start: {message}"),
                        hint,
                    });
                }
                Err(_) => {
                    let what = match serde_json::from_str(&line) {
                        Ok(ToMaster::Signal { .. }) => "was interrupted before the run began",
                        _ => "sent what is no message",
                    };
                    return Err(MachinesError::Left(format!("{name} {what}")));
                }
            }
        }
        let all_alike = backends.iter().all(|backend| *backend == Some(own));
        Ok(if all_alike { own } else { Some(Backend::Gloo) })
    }

    /// Tells all machines how the run ended, and closes the connections.
    pub(crate) fn dismiss(self, status: u8, how: &str) {
        for member in self.members {
            member.wire.send(&ToMember::Over { status, how: how.to_owned() });
            member.wire.finish();
        }
    }

    /// Closes the connections after all was sent.
    pub(crate) fn finish(self) {
        self.members.into_iter().for_each(|member| member.wire.finish());
    }
}

/// Tells what connects to a run that has all its machines that it is too late.
pub(in crate::launch) fn refuse_late(stream: TcpStream) {
    // On a thread of its own, because a stranger may read nothing.
    std::thread::spawn(move || {
        if let Ok(wire) = Wire::open(stream, |_| false) {
            let message = "the run has begun with all its machines".to_owned();
            wire.send(&ToWaiting::Refused { message, hint: None });
            wire.finish();
        }
    });
}

/// The name of this machine.
pub(super) fn host_name() -> String {
    #[cfg(unix)]
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let name = "this machine".to_owned();
    name
}

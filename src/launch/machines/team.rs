//! The machines of a run, as the master knows them.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use yolo_base::Hint as _;
use yolo_plan::RunPlan;
use yolo_plan::backend::Backend;
use yolo_plan::run::{Part, TrainTask};
use yolo_protocol::ToMember;
use yolo_protocol::meeting::{Arrival, PrepareInput, Preparing, ToWaiting};

use super::error::MachinesError;
use super::facts::Facts;
use super::place::Place;
use super::wire::Wire;
use crate::launch::host::host_name;

/// How long a message may take until the system has it.
const FLUSH: Duration = Duration::from_millis(500);

/// What arrives at the master's port, with the number of the connection.
pub(in crate::launch) enum Heard {
    /// Something has connected, and sent this first line; `None` if it sent none in time.
    Arrived(TcpStream, Option<String>),
    Line(u64, String),
    Closed(u64),
}

/// A machine that has joined, and the connection to it.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) member: Arrival,
    pub(super) wire: Wire,
}

/// All machines of a run.
pub(crate) struct Team {
    address: SocketAddr,
    own_ranks: usize,
    /// In the order of their numbers, from 1.
    members: Vec<Remote>,
    /// How messages name them.
    names: Vec<String>,
    heard: Option<Receiver<Heard>>,
}

impl Team {
    pub(super) fn new(
        address: SocketAddr,
        own_ranks: usize,
        members: impl Iterator<Item = Remote>,
        heard: Receiver<Heard>,
    ) -> Self {
        let members: Vec<Remote> = members.collect();
        let hosts: Vec<&str> = members.iter().map(|remote| remote.member.host.as_str()).collect();
        let names = distinct_names(&host_name(), &hosts);
        Self { address, own_ranks, members, names, heard: Some(heard) }
    }

    /// The address of the master on which the ranks' store is served.
    pub(in crate::launch) fn address(&self) -> IpAddr {
        self.address.ip()
    }

    /// The number of ranks on each machine.
    pub(in crate::launch) fn ranks(&self) -> Vec<usize> {
        std::iter::once(self.own_ranks).chain(self.members.iter().map(|remote| remote.member.ranks)).collect()
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
        self.members.get(machine.wrapping_sub(1)).map_or("", |remote| &remote.member.host)
    }

    /// The same, with its number if it is not the only machine of this name.
    pub(in crate::launch) fn name(&self, machine: usize) -> &str {
        self.names.get(machine.wrapping_sub(1)).map_or("", String::as_str)
    }

    /// The machine of a connection.
    pub(in crate::launch) fn machines(&self) -> Vec<(u64, usize)> {
        self.members.iter().map(|Remote { member, .. }| (member.connection, member.machine)).collect()
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
        let hint = error.hint().map(|hint| hint.into_owned());
        let message = ToWaiting::Refused { message: error.to_string(), hint };
        self.members.iter().for_each(|remote| remote.wire.send(&message));
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
        let arrivals: Vec<Arrival> = self.members.iter().map(|remote| remote.member.clone()).collect();
        let master = (&host_name()[..], &facts.later[..]);
        let (patience, began) = (Place::patience(), Instant::now());
        let (mut machine, layouts) =
            Preparing::new(master, self.own_ranks, &arrivals, resumed, patience, Duration::ZERO);
        self.send_on(&layouts);
        loop {
            if let Some(result) = machine.result(own) {
                return Ok(result?);
            }
            let heard = self.heard.as_ref().and_then(|heard| heard.recv_timeout(machine.wake_in()).ok());
            let input = match heard {
                Some(Heard::Line(connection, line)) => PrepareInput::Line(connection, line),
                Some(Heard::Closed(connection)) => PrepareInput::Closed(connection),
                Some(Heard::Arrived(stream, _)) => {
                    refuse_late(stream);
                    PrepareInput::Tick
                }
                None => PrepareInput::Tick,
            };
            let messages = machine.handle(began.elapsed(), input);
            self.send_on(&messages);
        }
    }

    /// Sends messages on the connections with these numbers.
    fn send_on(&self, messages: &[(u64, ToWaiting)]) {
        for (connection, message) in messages {
            let remote = self.members.iter().find(|remote| remote.member.connection == *connection);
            if let Some(remote) = remote {
                remote.wire.send(message);
            }
        }
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

/// The names of the machines 1, 2, and so on with these host names. Machines that are copies of one image, or containers,
/// may all have the same.
fn distinct_names(own: &str, hosts: &[&str]) -> Vec<String> {
    let shared = |host: &str| host == own || hosts.iter().filter(|other| **other == host).count() > 1;
    let name = |(index, host): (usize, &&str)| match shared(host) {
        true => format!("machine {}, {host}", index + 1),
        false => (*host).to_owned(),
    };
    hosts.iter().enumerate().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_of_one_name_are_told_apart_by_their_numbers() {
        assert_eq!(distinct_names("a", &["b", "c"]), ["b", "c"]);
        assert_eq!(
            distinct_names("a", &["a", "c", "b", "b"]),
            ["machine 1, a", "c", "machine 3, b", "machine 4, b"]
        );
    }
}

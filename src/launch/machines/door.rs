//! The port of the master: waits for the other machines and refuses what does not belong to the run, each
//! with a message, without harm to the others.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use yolo_base::format::{count, list};

use super::error::MachinesError;
use super::facts::{Facts, compare, named};
use super::greeting::first_line;
use super::handshake::{Hello, PROTOCOL, ToWaiting};
use super::place::Place;
use super::team::{Heard, Remote, Team, host_name};
use super::wire::Wire;

/// The pause after a connection that could not be accepted.
const REST: Duration = Duration::from_millis(200);
/// Ranks that one machine can have.
const MOST_RANKS: usize = 1024;
/// Letters of what a stranger calls itself that are shown.
const SHOWN: usize = 64;
/// Time between lines about machines that are missing.
const REMINDER: Duration = Duration::from_secs(10);

/// The open port of the master.
pub(crate) struct Door {
    listener: TcpListener,
    address: SocketAddr,
}

impl Door {
    /// Opens the port that the options name.
    ///
    /// # Errors
    /// When the address is not one of this machine, or the port is taken.
    pub(crate) fn open(place: &Place) -> Result<Self, MachinesError> {
        let shown = format!("{}:{}", place.host, place.port);
        let refuse = |why: String, hint: &str| MachinesError::Listen {
            address: shown.clone(),
            why,
            hint: hint.to_owned(),
        };
        const OWN: &str =
            "on machine 0, --master-addr is one of its own addresses, which the others can reach";
        let found = (place.host.as_str(), place.port).to_socket_addrs();
        let found: Vec<SocketAddr> =
            found.map_err(|error| refuse(format!("the name is not known ({error})"), OWN))?.collect();
        // Debian's /etc/hosts gives a machine's own name a loopback address.
        let loopback = |address: &&SocketAddr| address.ip().is_loopback();
        let wanted = place.host == "localhost" || place.host.parse::<IpAddr>().is_ok();
        let address = match found.iter().find(|address| !loopback(address)).or_else(|| found.first()) {
            Some(address) if loopback(&address) && !wanted => {
                let why =
                    format!("the name means {} on this machine, which others cannot reach", address.ip());
                return Err(refuse(why, "name the address at which the others reach this machine"));
            }
            Some(address) => *address,
            None => return Err(refuse("the name has no address".to_owned(), OWN)),
        };
        if address.ip().is_unspecified() {
            return Err(refuse("the other machines cannot connect to this address".to_owned(), OWN));
        }
        let listener = TcpListener::bind(address).map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrNotAvailable => {
                refuse("this is not an address of this machine".to_owned(), OWN)
            }
            std::io::ErrorKind::AddrInUse => refuse(
                format!("the port is taken by {}", owner_of(place.port)),
                "give all machines another --master-port, or end that process if it is left from an earlier run",
            ),
            _ => refuse(error.to_string(), OWN),
        })?;
        let address = listener.local_addr().map_err(|error| refuse(error.to_string(), OWN))?;
        Ok(Self { listener, address })
    }

    /// The address on which the master listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until all machines are there, and compares them. `say` prints a line.
    ///
    /// # Errors
    /// When machines are missing after the time limit, or differ in what must be equal. All machines are told.
    pub(crate) fn gather(
        self,
        place: &Place,
        own: &Facts,
        say: &mut dyn FnMut(String),
    ) -> Result<Team, MachinesError> {
        let (sender, heard) = channel();
        let listener = self.listener;
        let arrivals = sender.clone();
        std::thread::spawn(move || accept(&listener, &arrivals));
        let mut waiting = Waiting { place, sender, members: Vec::new(), last: 0 };
        waiting.members.resize_with(place.machines - 1, || None);
        waiting.until_all_are_there(&heard, say)?;
        let team = Team::new(self.address, own.ranks, waiting.members.into_iter().flatten(), heard);
        let master = host_name();
        let mut refusal = None;
        for member in team.members() {
            let other = (member.machine, member.host.as_str(), &member.facts[..]);
            if let Err(error) = compare((&master, &own.facts), other) {
                refusal = Some(error);
                break;
            }
        }
        match refusal {
            Some(error) => {
                team.refuse(&error);
                team.finish();
                Err(error)
            }
            None => Ok(team),
        }
    }
}

/// Accepts connections as long as somebody listens to what they say.
fn accept(listener: &TcpListener, sender: &Sender<Heard>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // Too many open files, for example: they may be closed again.
            std::thread::sleep(REST);
            continue;
        };
        let sender = sender.clone();
        std::thread::spawn(move || {
            let line = first_line(&stream);
            let _ = sender.send(Heard::Arrived(stream, line));
        });
    }
}

/// The machines that have come so far.
struct Waiting<'a> {
    place: &'a Place,
    sender: Sender<Heard>,
    members: Vec<Option<Remote>>,
    /// Numbers connections.
    last: u64,
}

impl Waiting<'_> {
    fn until_all_are_there(
        &mut self,
        heard: &Receiver<Heard>,
        say: &mut dyn FnMut(String),
    ) -> Result<(), MachinesError> {
        let (began, patience) = (Instant::now(), Place::patience());
        let mut reminder = began;
        while self.members.iter().any(Option::is_none) {
            if began.elapsed() >= patience {
                let (seconds, missing) = (patience.as_secs(), self.missing_in_words());
                let error = MachinesError::Missing { seconds, missing };
                self.members.iter().flatten().for_each(|member| member.refuse(&error));
                self.members.drain(..).flatten().for_each(|member| member.wire.finish());
                return Err(error);
            }
            if Instant::now() >= reminder {
                reminder = Instant::now() + REMINDER;
                say(format!("waiting: {}", self.missing_in_words()));
                let missing = self.missing();
                let all = self.members.iter().flatten();
                all.for_each(|member| member.wire.send(&ToWaiting::Waiting { missing: missing.clone() }));
            }
            let wait = (began + patience).min(reminder).saturating_duration_since(Instant::now());
            match heard.recv_timeout(wait) {
                Ok(Heard::Arrived(stream, line)) => self.welcome(stream, line, say),
                Ok(Heard::Closed(connection)) => {
                    let of_it = |member: &Option<Remote>| {
                        member.as_ref().is_some_and(|member| member.connection == connection)
                    };
                    if let Some(member) =
                        self.members.iter_mut().find(|member| of_it(member)).and_then(Option::take)
                    {
                        say(format!("{} has left", named(member.machine, &member.host)));
                    }
                }
                Ok(Heard::Line(..)) | Err(RecvTimeoutError::Timeout) => {}
                // This value has a sender.
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(())
    }

    fn missing(&self) -> Vec<usize> {
        let missing = self.members.iter().enumerate().filter(|(_, member)| member.is_none());
        missing.map(|(index, _)| index + 1).collect()
    }

    fn missing_in_words(&self) -> String {
        missing(&self.missing(), self.place.machines)
    }

    /// Lets a machine in, or tells it why not.
    fn welcome(&mut self, stream: TcpStream, line: Option<String>, say: &mut dyn FnMut(String)) {
        let from = stream.peer_addr().map_or("an unknown address".to_owned(), |peer| peer.ip().to_string());
        let hello: serde_json::Value =
            line.and_then(|line| serde_json::from_str(&line).ok()).unwrap_or_default();
        let Some(protocol) = hello.get("yolo").and_then(serde_json::Value::as_u64) else {
            say(format!("ignored a connection from {from}, which is not from yolo"));
            return;
        };
        let program =
            printable(hello.get("program").and_then(serde_json::Value::as_str).unwrap_or("unknown"));
        let hello: Option<Hello> =
            serde_json::from_value(hello).ok().filter(|_| protocol == u64::from(PROTOCOL));
        let hello = hello.map(|hello: Hello| Hello { host: printable(&hello.host), ..hello });
        let refusal = match &hello {
            Some(hello) => self.objection(hello),
            None => Some(format!(
                "machine 0 runs yolo {}, and this machine runs yolo {program}, which cannot work together",
                env!("CARGO_PKG_VERSION")
            )),
        };
        self.last += 1;
        let (connection, sender) = (self.last, self.sender.clone());
        let wire = Wire::open(stream, move |line| {
            let heard = line.map_or(Heard::Closed(connection), |line| Heard::Line(connection, line));
            sender.send(heard).is_ok()
        });
        let Ok(wire) = wire else { return };
        match (hello, refusal) {
            (Some(hello), None) => {
                let Hello { machine, host, ranks, facts, .. } = hello;
                say(format!("{} has joined, with {}", named(machine, &host), count(ranks, "rank")));
                wire.send(&ToWaiting::Waiting { missing: Vec::new() });
                self.members[machine - 1] = Some(Remote { machine, host, connection, ranks, facts, wire });
            }
            (_, refusal) => {
                let message = refusal.unwrap_or_default();
                say(format!("refused a machine at {from}: {message}"));
                wire.send(&ToWaiting::Refused { message, hint: None });
                // On a thread of its own, because a stranger may read nothing.
                std::thread::spawn(move || wire.finish());
            }
        }
    }

    /// Why a machine cannot take part.
    fn objection(&self, hello: &Hello) -> Option<String> {
        let Hello { machine, machines, host, .. } = hello;
        if *machines != self.place.machines {
            return Some(format!(
                "--nnodes differs: {} on {}, {machines} on {}",
                self.place.machines,
                named(0, &host_name()),
                named(*machine, host)
            ));
        }
        if !(1..=MOST_RANKS).contains(&hello.ranks) {
            return Some(format!("{} has {} ranks", named(*machine, host), hello.ranks));
        }
        if *machine == 0 || *machine >= self.place.machines {
            return Some(format!(
                "--node-rank {machine} of {host} is not a number from 1 to {}",
                self.place.machines - 1
            ));
        }
        let other = self.members[machine - 1].as_ref()?;
        Some(format!(
            "--node-rank {machine} is taken: {} has joined already, and {host} gives the same number",
            other.host
        ))
    }
}

/// `machine 2 of 3 is missing`.
pub(super) fn missing(missing: &[usize], machines: usize) -> String {
    let all: Vec<String> = missing.iter().map(usize::to_string).collect();
    match missing.len() {
        1 => format!("machine {} of {machines} is missing", all[0]),
        _ => format!("machines {} of {machines} are missing", list(&all)),
    }
}

/// What another machine calls itself, as it may go to a terminal.
fn printable(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(SHOWN).collect()
}

fn owner_of(port: u16) -> String {
    let host = yolo_checks::Host::of_this_machine(&yolo_checks::KnownPaths::default());
    yolo_checks::port_owner(&host, port).unwrap_or_else(|| "another program".to_owned())
}

//! The port of the master: opens it, and connects what arrives there to [`Gathering`], which decides who belongs to
//! the run.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use yolo_base::format::count;
use yolo_protocol::meeting::{
    Arrival, GatherAction, GatherInput, GatherNotice, Gathering, Master, missing_in_words, named,
};

use super::error::MachinesError;
use super::facts::Facts;
use super::greeting::first_line;
use super::place::Place;
use super::team::{Heard, Remote, Team};
use super::wire::Wire;
use crate::launch::host::host_name;

/// The pause after a connection that could not be accepted.
const REST: Duration = Duration::from_millis(200);

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
        const NOT_OWN: &str = "if this is machine 0, name one of its own addresses in --master-addr; otherwise give it \
                               another --node-rank, from 1";
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
                refuse("this is not an address of this machine".to_owned(), NOT_OWN)
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
        let machines = place.machines;
        let master = Master {
            host: host_name(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            machines,
            facts: own.facts.clone(),
        };
        let began = Instant::now();
        let machine = Gathering::new(master, Place::patience(), Duration::ZERO);
        let wires = BTreeMap::new();
        let mut waiting = Waiting { machine, machines, began, sender, wires, say };
        let arrivals = waiting.until_it_ends(&heard)?;
        let mut wires = waiting.wires;
        let remote = |member: Arrival| Some(Remote { wire: wires.remove(&member.connection)?, member });
        Ok(Team::new(self.address, own.ranks, arrivals.into_iter().filter_map(remote), heard))
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

/// Connects [`Gathering`], which decides, to the connections and the user.
struct Waiting<'a> {
    machine: Gathering,
    machines: usize,
    began: Instant,
    sender: Sender<Heard>,
    /// All connections that are open, by number.
    wires: BTreeMap<u64, Wire>,
    say: &'a mut dyn FnMut(String),
}

impl Waiting<'_> {
    fn until_it_ends(&mut self, heard: &Receiver<Heard>) -> Result<Vec<Arrival>, MachinesError> {
        // Numbers connections.
        let mut last = 0;
        loop {
            let input = match heard.recv_timeout(self.machine.wake_in()) {
                Ok(Heard::Arrived(stream, line)) => {
                    last += 1;
                    let from = stream
                        .peer_addr()
                        .map_or("an unknown address".to_owned(), |peer| peer.ip().to_string());
                    let Ok(wire) = self.open(last, stream) else { continue };
                    self.wires.insert(last, wire);
                    GatherInput::Arrived { connection: last, from, line }
                }
                Ok(Heard::Closed(connection)) => {
                    self.wires.remove(&connection);
                    GatherInput::Closed(connection)
                }
                // Machines have nothing to say before they have their part.
                Ok(Heard::Line(..)) | Err(_) => GatherInput::Tick,
            };
            let actions = self.machine.handle(self.began.elapsed(), input);
            let farewells: Vec<_> = actions.into_iter().filter_map(|action| self.act(action)).collect();
            match self.machine.result() {
                Some(Ok(arrivals)) => return Ok(arrivals.clone()),
                Some(Err(error)) => {
                    // Before this process ends, all machines have read why.
                    farewells.into_iter().for_each(|farewell| drop(farewell.join()));
                    return Err(error.clone().into());
                }
                None => {}
            }
        }
    }

    fn open(&self, connection: u64, stream: TcpStream) -> std::io::Result<Wire> {
        let sender = self.sender.clone();
        Wire::open(stream, move |line| {
            let heard = line.map_or(Heard::Closed(connection), |line| Heard::Line(connection, line));
            sender.send(heard).is_ok()
        })
    }

    /// Returns what closes a connection, if the action does.
    fn act(&mut self, action: GatherAction) -> Option<JoinHandle<()>> {
        match action {
            GatherAction::Send(connection, message) => {
                if let Some(wire) = self.wires.get(&connection) {
                    wire.send(&message);
                }
            }
            GatherAction::Dismiss(connection, message) => {
                let wire = self.wires.remove(&connection)?;
                wire.send(&message);
                return Some(farewell(wire));
            }
            GatherAction::Close(connection) => {
                if let Some(wire) = self.wires.remove(&connection) {
                    wire.close();
                }
            }
            GatherAction::Notice(notice) => (self.say)(in_words(notice, self.machines)),
        }
        None
    }
}

/// Sends what is left and closes the connection, on a thread of its own, because a stranger may read nothing.
fn farewell(wire: Wire) -> JoinHandle<()> {
    std::thread::spawn(move || wire.finish())
}

/// What the user of the master reads.
fn in_words(notice: GatherNotice, machines: usize) -> String {
    match notice {
        GatherNotice::Waiting(missing) => format!("waiting: {}", missing_in_words(&missing, machines)),
        GatherNotice::Joined { machine, host, ranks } => {
            format!("{} has joined, with {}", named(machine, &host), count(ranks, "rank"))
        }
        GatherNotice::Left { machine, host } => format!("{} has left", named(machine, &host)),
        GatherNotice::Stranger { from } => {
            format!("ignored a connection from {from}, which is not from yolo")
        }
        GatherNotice::Refused { from, message } => format!("refused a machine at {from}: {message}"),
    }
}
fn owner_of(port: u16) -> String {
    let host = yolo_checks::Host::of_this_machine(&yolo_checks::KnownPaths::default());
    yolo_checks::port_owner(&host, port).unwrap_or_else(|| "another program".to_owned())
}

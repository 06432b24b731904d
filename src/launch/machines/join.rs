//! How a machine that is not the master joins a run: it connects, again and again until the master is there,
//! says what it has, and waits for its part of the ranks.

use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use yolo_plan::backend::Backend;
use yolo_plan::run::{Part, TrainTask};

use super::door::missing;
use super::error::MachinesError;
use super::facts::{Fact, Facts};
use super::handshake::{FromWaiting, Hello, PROTOCOL, ToWaiting};
use super::place::Place;
use super::team::host_name;
use super::wire::Wire;

/// Time between attempts to connect, and how long one may take.
const RETRY: Duration = Duration::from_secs(1);
const CONNECT: Duration = Duration::from_secs(5);
/// Time between lines about what this machine waits for.
const REMINDER: Duration = Duration::from_secs(10);
/// A master that sends nothing for this time is gone.
const SILENCE: Duration = Duration::from_secs(30);

/// A machine that has joined, with its part of the ranks.
pub(crate) struct Joined {
    pub(super) wire: Wire,
    /// Lines of the master; `None` when the connection is closed.
    pub(super) heard: Receiver<Option<String>>,
    pub(super) machines: usize,
    pub(super) number: usize,
    ranks: usize,
    layout: Layout,
}

/// What the master says when all machines are there.
struct Layout {
    /// The number of the first rank here, and of all ranks.
    first: usize,
    world_size: usize,
    resumed: Option<Box<TrainTask>>,
}

/// Joins the run of `place`. `say` prints a line.
///
/// # Errors
/// When the master is not there in time, or refuses the run.
pub(crate) fn join(place: &Place, own: &Facts, say: &mut dyn FnMut(String)) -> Result<Joined, MachinesError> {
    let stream = connect(place, say)?;
    let (sender, heard) = channel();
    let unreachable = |error: std::io::Error| MachinesError::Unreachable {
        address: format!("{}:{}", place.host, place.port),
        why: error.to_string(),
    };
    let wire = Wire::open(stream, move |line| sender.send(line).is_ok()).map_err(unreachable)?;
    wire.send(&Hello {
        yolo: PROTOCOL,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        machine: place.number,
        machines: place.machines,
        host: host_name(),
        ranks: own.ranks,
        facts: own.facts.clone(),
    });
    let (machines, number) = (place.machines, place.number);
    let layout = wait(place, &heard, say)?;
    Ok(Joined { wire, heard, machines, number, ranks: own.ranks, layout })
}

fn connect(place: &Place, say: &mut dyn FnMut(String)) -> Result<TcpStream, MachinesError> {
    let (began, patience) = (Instant::now(), Place::patience());
    let shown = format!("{}:{}", place.host, place.port);
    let mut reminder = began;
    loop {
        let tried = try_once(place);
        let why = match tried {
            Ok(stream) => return Ok(stream),
            Err(error) => error.to_string(),
        };
        if began.elapsed() >= patience {
            let why = format!("{why}; tried for {} s", patience.as_secs());
            return Err(MachinesError::Unreachable { address: shown, why });
        }
        if Instant::now() >= reminder {
            reminder = Instant::now() + REMINDER;
            say(format!("waiting for machine 0 at {shown}: {why}"));
        }
        std::thread::sleep(RETRY.min(patience.saturating_sub(began.elapsed())));
    }
}

fn try_once(place: &Place) -> std::io::Result<TcpStream> {
    let mut last = std::io::Error::other("the name has no address");
    let addresses: Vec<SocketAddr> = (place.host.as_str(), place.port).to_socket_addrs()?.collect();
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Waits for the layout.
fn wait(
    place: &Place,
    heard: &Receiver<Option<String>>,
    say: &mut dyn FnMut(String),
) -> Result<Layout, MachinesError> {
    let mut joined = false;
    let (began, patience) = (Instant::now(), Place::patience());
    let silence = SILENCE.min(patience);
    loop {
        match heard.recv_timeout(silence) {
            Ok(Some(line)) => match serde_json::from_str(&line) {
                Ok(ToWaiting::Beat) => {}
                Ok(ToWaiting::Waiting { missing: machines }) => {
                    if !joined {
                        say(format!("joined the run at {}:{}", place.host, place.port));
                    }
                    joined = true;
                    if !machines.is_empty() {
                        say(format!("waiting: {}", missing(&machines, place.machines)));
                    }
                }
                Ok(ToWaiting::Refused { message, hint }) => {
                    return Err(MachinesError::Refused { message, hint });
                }
                Ok(ToWaiting::Layout { first, world_size, resumed }) => {
                    return Ok(Layout { first, world_size, resumed });
                }
                Err(_) => {
                    let what = format!(
                        "what answers at {}:{} is not a yolo of this version",
                        place.host, place.port
                    );
                    return Err(MachinesError::Left(what));
                }
            },
            // Before the master looks at its port, nobody answers there.
            Err(RecvTimeoutError::Timeout) if !joined && began.elapsed() < patience => {
                say("waiting for machine 0, which is not ready yet".to_owned());
            }
            Err(RecvTimeoutError::Timeout) => {
                let silence = if joined { silence } else { began.elapsed() };
                let what = format!(
                    "what listens at {}:{} has sent nothing for {} s",
                    place.host,
                    place.port,
                    silence.as_secs()
                );
                return Err(MachinesError::Left(what));
            }
            Ok(None) | Err(RecvTimeoutError::Disconnected) => {
                let what = "machine 0 closed the connection before the run began".to_owned();
                return Err(MachinesError::Left(what));
            }
        }
    }
}

impl Joined {
    /// The ranks of this machine.
    pub(crate) fn part(&self) -> Part {
        let Layout { first, world_size, .. } = self.layout;
        Part { first, first_here: 0, here: self.ranks, world_size }
    }

    /// The task of the run that is resumed, as the master has planned it.
    pub(crate) fn resumed(&self) -> Option<&TrainTask> {
        self.layout.resumed.as_deref()
    }

    /// The address of this machine on its way to the master.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.wire.own_address().map(|address| address.ip())
    }

    /// Tells the master that this machine can start. `data` is about the data set of a resumed run.
    pub(crate) fn ready(&self, backend: Option<Backend>, data: Vec<Fact>) {
        self.wire.send(&FromWaiting::Ready { backend, data });
    }

    /// Tells the master that it cannot.
    pub(crate) fn fail(self, message: String, hint: Option<String>) {
        self.wire.send(&FromWaiting::Failed { message, hint });
        self.wire.finish();
    }
}

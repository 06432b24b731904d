//! Connects [`Joining`], which decides, to the connection of a machine that is not the master, and to its user.

use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use yolo_plan::backend::Backend;
use yolo_plan::run::{Part, TrainTask};
use yolo_protocol::meeting::{
    Fact, FromWaiting, Hello, JoinAction, JoinInput, JoinNotice, Joining, Layout, MESSAGES, MeetingError,
    missing_in_words,
};

use super::error::MachinesError;
use super::facts::Facts;
use super::place::Place;
use super::wire::Wire;
use crate::launch::host::host_name;

/// How long one attempt to connect may take.
const CONNECT: Duration = Duration::from_secs(5);

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

/// A connection to the master.
struct Line {
    wire: Wire,
    heard: Receiver<Option<String>>,
}

/// Joins the run of `place`. `say` prints a line.
///
/// # Errors
/// When the master is not there in time, or refuses the run.
pub(crate) fn join(place: &Place, own: &Facts, say: &mut dyn FnMut(String)) -> Result<Joined, MachinesError> {
    let hello = Hello {
        yolo: MESSAGES,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        machine: place.number,
        machines: place.machines,
        host: host_name(),
        ranks: own.ranks,
        facts: own.facts.clone(),
    };
    let address = format!("{}:{}", place.host, place.port);
    let began = Instant::now();
    let mut machine = Joining::new(hello, address.clone(), Place::patience(), Duration::ZERO);
    let mut line: Option<Line> = None;
    let mut input = JoinInput::Tick;
    while machine.result().is_none() {
        let mut answer = None;
        for action in machine.handle(began.elapsed(), input) {
            match action {
                JoinAction::Connect => {
                    answer = Some(match connect(place) {
                        Ok(connection) => {
                            line = Some(connection);
                            JoinInput::Connected
                        }
                        Err(error) => JoinInput::Unreachable(error.to_string()),
                    });
                }
                JoinAction::Send(hello) => {
                    if let Some(line) = &line {
                        line.wire.send(&hello);
                    }
                }
                JoinAction::Notice(notice) => say(in_words(notice, &address, place.machines)),
            }
        }
        input = answer.unwrap_or_else(|| next(line.as_ref(), machine.wake_in()));
    }
    let layout = machine.into_result().unwrap_or(Err(MeetingError::MasterLeft))?;
    let Some(Line { wire, heard }) = line else { return Err(MeetingError::MasterLeft.into()) };
    Ok(Joined { wire, heard, machines: place.machines, number: place.number, ranks: own.ranks, layout })
}

/// What happens next, within this time.
fn next(line: Option<&Line>, wait: Duration) -> JoinInput {
    let Some(line) = line else {
        std::thread::sleep(wait);
        return JoinInput::Tick;
    };
    match line.heard.recv_timeout(wait) {
        Ok(Some(line)) => JoinInput::Line(line),
        Ok(None) | Err(RecvTimeoutError::Disconnected) => JoinInput::Closed,
        Err(RecvTimeoutError::Timeout) => JoinInput::Tick,
    }
}

fn connect(place: &Place) -> std::io::Result<Line> {
    let mut last = std::io::Error::other("the name has no address");
    let addresses: Vec<SocketAddr> = (place.host.as_str(), place.port).to_socket_addrs()?.collect();
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => {
                let (sender, heard) = channel();
                let wire = Wire::open(stream, move |line| sender.send(line).is_ok())?;
                return Ok(Line { wire, heard });
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// What the user of this machine reads.
fn in_words(notice: JoinNotice, address: &str, machines: usize) -> String {
    match notice {
        JoinNotice::NoMaster(why) => format!("waiting for machine 0 at {address}: {why}"),
        JoinNotice::NotReady => "waiting for machine 0, which is not ready yet".to_owned(),
        JoinNotice::Joined => format!("joined the run at {address}"),
        JoinNotice::Waiting(missing) => format!("waiting: {}", missing_in_words(&missing, machines)),
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

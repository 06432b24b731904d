//! The roll call of a group: how its ranks meet, and how a failure gets a name.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::activity::{Activity, Cause};
use super::answering::{Answering, cause_line};
use super::asking::{Address, ask};
use super::interface_address::interface_address;
use super::peer::Peer;
use super::verdict::verdict;
use crate::error::{Error, ErrorKind, Result};
use crate::store::Store;

/// Pauses between looks at the store while ranks are awaited.
const PAUSES: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));

/// Where this rank answers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Listen<'a> {
    /// The loopback address.
    Loopback,
    /// A host name or address of this machine.
    Address(&'a str),
    /// A network interface.
    Interface(&'a str),
}

/// Knows where the other ranks of a group answer.
#[derive(Debug)]
pub(crate) struct RollCall {
    activity: Arc<Activity>,
    answering: Option<Answering>,
    peers: Vec<Address>,
}

impl RollCall {
    /// Starts to answer, and tells the others in the store where.
    /// `port` is that of gloo, if it is known.
    pub(crate) fn announce(
        store: &dyn Store,
        rank: usize,
        world: usize,
        listen: Listen<'_>,
        port: Option<u16>,
    ) -> Result<Self> {
        let activity = Arc::new(Activity::new());
        if world == 1 {
            return Ok(Self { activity, answering: None, peers: Vec::new() });
        }
        let failed = |why: String| Error::new(ErrorKind::Other, "listening for other ranks", why);
        let address = match listen {
            Listen::Loopback => Ipv4Addr::LOCALHOST.into(),
            Listen::Address(host) => resolve(host).map_err(failed)?,
            Listen::Interface(name) => interface_address(name)
                .ok_or_else(|| failed(format!("the network interface {name} has no address")))?,
        };
        let answering = Answering::start(address, Arc::clone(&activity))
            .map_err(|error| failed(format!("{address}: {error}")))?;
        let announcement = format!("{} {}", answering.announcement(), port.unwrap_or(0));
        store.set(&key(rank), announcement.as_bytes())?;
        Ok(Self { activity, answering: Some(answering), peers: Vec::new() })
    }

    /// Waits until all ranks have announced themselves, and learns where they answer.
    pub(crate) fn wait(
        &mut self,
        store: &dyn Store,
        rank: usize,
        world: usize,
        timeout: Duration,
    ) -> Result<()> {
        let (start, mut pause) = (Instant::now(), PAUSES.0);
        let mut missing: Vec<usize> = (0..world).filter(|other| *other != rank).collect();
        loop {
            let mut awaited = Vec::new();
            for other in missing {
                let name = key(other);
                if store.check(&[&name])? {
                    self.peers.extend(Address::parse(other, &store.get(&name)?));
                } else {
                    awaited.push(other);
                }
            }
            if awaited.is_empty() {
                self.peers.sort_by_key(|peer| peer.rank);
                return Ok(());
            }
            if start.elapsed() >= timeout {
                let message =
                    format!("{} did not come within {:.1} s", names(&awaited), timeout.as_secs_f64());
                return Err(Error::new(ErrorKind::Timeout, "waiting for the other ranks", message)
                    .with_ranks(awaited));
            }
            missing = awaited;
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// The addresses on which the gloo of other ranks listens, where they are known.
    pub(crate) fn peer_sockets(&self) -> Vec<SocketAddr> {
        self.peers.iter().filter_map(Address::gloo).collect()
    }

    /// Whether there are other ranks.
    pub(crate) fn has_peers(&self) -> bool {
        !self.peers.is_empty()
    }

    /// Why calls fail: the ranks to blame, and the reason.
    pub(crate) fn failure(&self) -> Option<(Vec<usize>, String)> {
        self.activity.cause().map(|cause| (cause.ranks, cause.text))
    }

    /// A call on the group begins. Ranks that make the same call must give the same text.
    pub(crate) fn begin(&self, call: String) {
        self.activity.begin(call);
    }

    /// The call is over, with or without an error.
    pub(crate) fn end(&self) {
        self.activity.end();
    }

    /// What the other ranks are doing, by rank.
    pub(crate) fn ask(&self) -> Vec<Peer> {
        ask(&self.peers, " state")
    }

    /// Adds to an error which ranks it is due to, and tells the others. Errors that are not due to another
    /// rank stay as they are.
    pub(crate) fn explain(&self, error: Error) -> Error {
        if self.answering.is_none() || error.kind() == ErrorKind::Other || !error.ranks().is_empty() {
            return error;
        }
        if let Some(told) = self.activity.cause() {
            return error.due_to(told.ranks, &told.text, told.lost);
        }
        let own = self.activity.now();
        let Some(cause) = verdict(&own, &self.ask()) else { return error };
        // While this rank asked, another may have told it more.
        if let Some(told) = self.activity.cause() {
            return error.due_to(told.ranks, &told.text, told.lost);
        }
        self.blame(cause.clone());
        error.due_to(cause.ranks, &cause.text, cause.lost)
    }

    /// Adds to an error of a message to or from rank `peer` what that rank is doing.
    pub(crate) fn explain_message(&self, error: Error, peer: Option<usize>) -> Error {
        let error = self.explain(error);
        if error.kind() == ErrorKind::Other || !error.ranks().is_empty() {
            return error;
        }
        match self.ask().into_iter().find(|answer| Some(answer.rank) == peer) {
            Some(answer) => error.due_to(vec![answer.rank], &answer.to_string(), false),
            None => error,
        }
    }

    /// Tells the others that `ranks` are to blame for what fails next.
    pub(crate) fn blame_ranks(&self, ranks: Vec<usize>, text: String) {
        self.blame(Cause { ranks, text, lost: false });
    }

    fn blame(&self, cause: Cause) {
        // Ranks that are gone cannot be told.
        let others: Vec<Address> = self
            .peers
            .iter()
            .filter(|peer| !(cause.lost && cause.ranks.contains(&peer.rank)))
            .cloned()
            .collect();
        let _ = ask(&others, &cause_line(&cause));
        self.activity.blame(cause);
    }
}

/// `rank 3`, `ranks 1 and 3`.
fn names(ranks: &[usize]) -> String {
    let text: Vec<String> = ranks.iter().map(usize::to_string).collect();
    match text.split_last() {
        Some((last, [])) => format!("rank {last}"),
        Some((last, rest)) => format!("ranks {} and {last}", rest.join(", ")),
        None => "no rank".to_owned(),
    }
}

/// The key under which a rank announces itself.
fn key(rank: usize) -> String {
    format!("roll call/{rank}")
}

fn resolve(host: &str) -> std::result::Result<IpAddr, String> {
    let mut found = (host, 0).to_socket_addrs().map_err(|error| format!("{host}: {error}"))?;
    found.next().map(|address| address.ip()).ok_or_else(|| format!("{host} has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_listed() {
        assert_eq!(names(&[3]), "rank 3");
        assert_eq!(names(&[1, 3]), "ranks 1 and 3");
        assert_eq!(names(&[1, 2, 3]), "ranks 1, 2 and 3");
    }
}

//! Asks other ranks what they are doing, all at once.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::peer::{Peer, PeerState};

/// How long a rank may take to answer. Its thread does nothing else.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where another rank answers.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) rank: usize,
    socket: SocketAddr,
    token: String,
    gloo: u16,
}

impl Address {
    /// From what the rank announced.
    pub(super) fn parse(rank: usize, announcement: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(announcement).ok()?;
        let mut fields = text.split(' ');
        let (socket, token, gloo) = (fields.next()?, fields.next()?, fields.next()?);
        let (socket, gloo) = (socket.parse().ok()?, gloo.parse().ok()?);
        Some(Self { rank, socket, token: token.to_owned(), gloo })
    }

    /// The address on which gloo of the rank listens, if it is known.
    pub(super) fn gloo(&self) -> Option<SocketAddr> {
        (self.gloo != 0).then(|| SocketAddr::new(self.socket.ip(), self.gloo))
    }

    /// Sends a message, which begins with a space, and returns what the rank is doing.
    fn send(&self, message: &str) -> PeerState {
        match self.exchange(message) {
            Ok(answer) => parse(&answer).unwrap_or(PeerState::Silent),
            Err(error) => match error.kind() {
                io::ErrorKind::ConnectionRefused
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::UnexpectedEof => PeerState::Gone,
                _ => PeerState::Silent,
            },
        }
    }

    fn exchange(&self, message: &str) -> io::Result<String> {
        let stream = TcpStream::connect_timeout(&self.socket, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        writeln!(&stream, "{}{message}", self.token)?;
        let mut answer = String::new();
        if BufReader::new(&stream).read_line(&mut answer)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(answer)
    }
}

/// Sends a message to all, and returns their states in the order of the list.
pub(super) fn ask(addresses: &[Address], message: &str) -> Vec<Peer> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = addresses
            .iter()
            .map(|address| (address.rank, scope.spawn(move || address.send(message))))
            .collect();
        threads
            .into_iter()
            .map(|(rank, thread)| Peer { rank, state: thread.join().unwrap_or(PeerState::Silent) })
            .collect()
    })
}

fn parse(answer: &str) -> Option<PeerState> {
    let mut fields = answer.trim_end().splitn(4, ' ');
    let number = fields.next()?.parse().ok()?;
    let state = fields.next()?;
    let since = Duration::from_millis(fields.next()?.parse().ok()?);
    let call = fields.next().unwrap_or_default().to_owned();
    match state {
        "calling" => Some(PeerState::Calling { number, call, since }),
        "elsewhere" => Some(PeerState::Elsewhere { number, last: call, since }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};
    use std::sync::Arc;

    use super::super::activity::Activity;
    use super::super::activity::Cause;
    use super::super::answering::{Answering, cause_line};
    use super::*;

    #[test]
    fn a_rank_says_what_it_does_and_learns_a_cause() {
        let activity = Arc::new(Activity::new());
        activity.begin("all-reduce of float [2, 3]".to_owned());
        let answering = Answering::start(Ipv4Addr::LOCALHOST.into(), Arc::clone(&activity)).unwrap();
        let address = Address::parse(3, format!("{} 4711", answering.announcement()).as_bytes()).unwrap();
        let [Peer { rank: 3, state: PeerState::Calling { number: 1, call, .. } }] =
            &ask(std::slice::from_ref(&address), " state")[..]
        else {
            panic!("rank 3 is in its first call")
        };
        assert_eq!(call, "all-reduce of float [2, 3]");
        let cause = Cause { ranks: vec![2], text: "rank 2 is gone".to_owned(), lost: true };
        let _ = ask(std::slice::from_ref(&address), &cause_line(&cause));
        assert_eq!(activity.cause(), Some(cause));
        drop(answering);
        assert_eq!(ask(&[address], " state")[0].state, PeerState::Gone);
    }

    #[test]
    fn a_rank_that_does_not_answer_is_silent() {
        // Connections are accepted by the system, and nothing reads from them.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let announcement = format!("{} token 0", listener.local_addr().unwrap());
        let address = Address::parse(1, announcement.as_bytes()).unwrap();
        assert_eq!(ask(&[address], " state")[0].state, PeerState::Silent);
        assert!(Address::parse(1, b"nonsense").is_none());
    }
}

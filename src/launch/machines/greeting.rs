//! The first line of a connection on the master's port. Anybody can connect there, so this line is limited in
//! length and in time, whatever is sent and however slowly. Real machines are in other connections, each with
//! a thread of its own, and do not wait for it.

use std::io::Read as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// How long a program that connects may take to say who it is.
const TIME: Duration = Duration::from_secs(5);
/// The most bytes of what it says. A machine's first message has no list of any length, see `Facts`.
const LENGTH: usize = 64 << 10;

/// The first line; `None` if it is late, too long or no text. What follows the line is not read.
pub(super) fn first_line(stream: &TcpStream) -> Option<String> {
    line_within(stream, TIME, LENGTH)
}

fn line_within(mut stream: &TcpStream, time: Duration, length: usize) -> Option<String> {
    let deadline = Instant::now() + time;
    let (mut line, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(())?;
        stream.set_read_timeout(Some(left)).ok()?;
        // Invariant: nothing after the line is taken from the socket, because a later reader expects it there.
        let there = stream.peek(&mut chunk).ok().filter(|&there| there > 0)?;
        let end = chunk[..there].iter().position(|&byte| byte == b'\n');
        let part = &mut chunk[..end.map_or(there, |end| end + 1)];
        stream.read_exact(part).ok()?;
        line.extend_from_slice(part);
        if line.len() > length {
            return None;
        }
        if end.is_some() {
            line.pop();
            return String::from_utf8(line).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// Longer than any of these tests takes.
    const LONG: Duration = Duration::from_secs(60);

    /// Both ends of a connection.
    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn what_follows_the_line_stays_in_the_socket() {
        let (mut client, server) = connection();
        client.write_all(b"first\nsecond\nthi").unwrap();
        assert_eq!(line_within(&server, LONG, 16).as_deref(), Some("first"));
        client.write_all(b"rd\n").unwrap();
        let mut rest = BufReader::new(&server).lines().map(Result::unwrap);
        assert_eq!((rest.next().unwrap(), rest.next().unwrap()), ("second".to_owned(), "third".to_owned()));
    }

    #[test]
    fn a_line_may_arrive_in_pieces_and_be_longer_than_one() {
        let (mut client, server) = connection();
        let sent = "x".repeat(10_000);
        let text = format!("{sent}\n");
        let writer = std::thread::spawn(move || {
            for piece in text.as_bytes().chunks(3000) {
                client.write_all(piece).unwrap();
            }
            client
        });
        assert_eq!(line_within(&server, LONG, 20_000), Some(sent));
        drop(writer.join().unwrap());
    }

    #[test]
    fn a_line_without_end_is_given_up_at_its_limit() {
        let (mut client, server) = connection();
        // As a stranger that sends as much as it can, until the connection is closed.
        let writer = std::thread::spawn(move || while client.write_all(&[b'x'; 4096]).is_ok() {});
        assert_eq!(line_within(&server, LONG, 64 << 10), None);
        drop(server);
        writer.join().unwrap();
    }

    #[test]
    fn the_time_counts_for_the_whole_line() {
        let (mut client, server) = connection();
        // Each byte comes well within the time, the line never.
        let writer = std::thread::spawn(move || {
            while client.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        assert_eq!(line_within(&server, Duration::from_millis(300), usize::MAX), None);
        drop(server);
        writer.join().unwrap();
        let (silent, server) = connection();
        assert_eq!(line_within(&server, Duration::from_millis(50), 16), None);
        drop(silent);
    }

    #[test]
    fn what_is_no_line_of_text_is_nothing() {
        for sent in [&b"no end"[..], b"\xff\n", b""] {
            let (mut client, server) = connection();
            client.write_all(sent).unwrap();
            drop(client);
            assert_eq!(line_within(&server, LONG, 16), None, "{sent:?}");
        }
    }
}

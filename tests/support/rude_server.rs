//! A server that misbehaves as a test requires. It serves files from memory over HTTP/1.1, with one
//! connection per request, counts requests, and can ignore ranges, cut, stall, drip, lie about lengths,
//! return errors and change its files.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How the next response goes wrong.
#[derive(Debug, Clone)]
pub(crate) enum Manner {
    /// Not at all: ranges work.
    Fine,
    /// 200 with the whole file, whatever was requested.
    NoRanges,
    /// Ranges, but no suffix ranges: those get this status.
    NoSuffix(u16),
    /// Range requests get this status; a request for the whole file succeeds.
    RefusesRanges(u16),
    /// Closes the connection after this many bytes of the body.
    Cut(usize),
    /// Sends this many bytes of the body, then nothing, and keeps the connection open.
    Stall(usize),
    /// Sends this many bytes at a time, with this pause in between.
    Drip(usize, Duration),
    /// This status with headers and a short body.
    Status(u16, &'static str),
    /// 200 and a web page.
    Html,
    /// The file with one bit flipped at this offset.
    Flip(usize),
    /// A redirect to itself.
    RedirectLoop,
    /// Another ETag than before.
    Changed,
    /// A weak validator.
    WeakTag,
    /// No ranges, and a length that is this many bytes too large.
    TooLong(usize),
    /// At most this many bytes per second.
    Limit(usize),
}

/// A running server. Its thread ends with the test process.
pub(crate) struct RudeServer {
    address: String,
    shared: Arc<Shared>,
}

struct Shared {
    files: HashMap<String, Vec<u8>>,
    /// The faults of a path, one per request; the last one stays.
    manners: Mutex<HashMap<String, Vec<Manner>>>,
    asked: Mutex<Vec<String>>,
    sent: Mutex<usize>,
    headers: Mutex<Vec<String>>,
}

impl RudeServer {
    /// Serves these files; every path begins with `/`.
    pub(crate) fn start(files: HashMap<String, Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            files,
            manners: Mutex::default(),
            asked: Mutex::default(),
            sent: Mutex::default(),
            headers: Mutex::default(),
        });
        let served = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&served);
                thread::spawn(move || {
                    // Clients may hang up.
                    let _ = shared.answer(stream);
                });
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    /// Sets the faults of a path: one per response, the last one forever.
    pub(crate) fn behave(&self, path: &str, manners: &[Manner]) {
        let reversed = manners.iter().rev().cloned().collect();
        self.shared.manners.lock().unwrap().insert(path.to_owned(), reversed);
    }

    /// The `Range` headers so far, empty for a request without one.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// Bytes of bodies that were sent so far.
    pub(crate) fn sent(&self) -> usize {
        *self.shared.sent.lock().unwrap()
    }

    /// All header lines of all requests.
    pub(crate) fn headers(&self) -> Vec<String> {
        self.shared.headers.lock().unwrap().clone()
    }
}

impl Shared {
    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        let request = lines.next().unwrap_or(Ok(String::new()))?;
        let path = request.split(' ').nth(1).unwrap_or("/").to_owned();
        let (mut range, mut if_range) = (String::new(), String::new());
        for line in lines {
            let line = line?;
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("range: ") {
                range = value.to_owned();
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("if-range: ") {
                if_range = value.to_owned();
            }
            self.headers.lock().unwrap().push(line);
        }
        self.asked.lock().unwrap().push(range.clone());
        let manner = self.manner(&path);
        let Some(file) = self.files.get(&path) else {
            return stream
                .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        };
        let file = match manner {
            Manner::Flip(at) => {
                let mut file = file.clone();
                file[at] ^= 1;
                file
            }
            _ => file.clone(),
        };
        let etag = match manner {
            Manner::Changed => "\"two\"",
            Manner::WeakTag => "W/\"one\"",
            _ => "\"one\"",
        };
        match &manner {
            Manner::Status(status, headers) => {
                let head = format!(
                    "HTTP/1.1 {status} Rude\r\n{headers}Content-Length: 4\r\nConnection: close\r\n\r\nrude"
                );
                return stream.write_all(head.as_bytes());
            }
            Manner::RefusesRanges(status) | Manner::NoSuffix(status)
                if range.starts_with("bytes=-")
                    || matches!(manner, Manner::RefusesRanges(_)) && !range.is_empty() =>
            {
                let head =
                    format!("HTTP/1.1 {status} Rude\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                return stream.write_all(head.as_bytes());
            }
            Manner::Html => {
                let page = "<!DOCTYPE html><html>Please log in</html>";
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
                    page.len()
                );
                return stream.write_all(head.as_bytes());
            }
            Manner::RedirectLoop => {
                let head = format!(
                    "HTTP/1.1 302 Found\r\nLocation: {path}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                );
                return stream.write_all(head.as_bytes());
            }
            _ => {}
        }
        // With If-Range, a part of another version is never sent.
        let same = if_range.is_empty() || if_range == etag;
        let ranges = same && !matches!(manner, Manner::NoRanges | Manner::TooLong(_));
        let wanted = if ranges { parse(&range, file.len()) } else { None };
        let too_long = if let Manner::TooLong(bytes) = manner { bytes } else { 0 };
        let (head, body) = match wanted {
            None => (
                format!("HTTP/1.1 200 OK\r\nETag: {etag}\r\nContent-Length: {}\r\n", file.len() + too_long),
                &file[..],
            ),
            Some((start, end)) => {
                let total = file.len();
                let length = end - start + too_long;
                let last = end - 1;
                let head = format!(
                    "HTTP/1.1 206 Partial Content\r\nETag: {etag}\r\nContent-Range: bytes {start}-{last}/{total}\r\nContent-Length: {length}\r\n"
                );
                (head, &file[start..end])
            }
        };
        stream.write_all(head.as_bytes())?;
        stream.write_all(b"Connection: close\r\n\r\n")?;
        match manner {
            Manner::Cut(bytes) => self.send(&mut stream, &body[..bytes.min(body.len())]),
            Manner::Stall(bytes) if bytes < body.len() => {
                self.send(&mut stream, &body[..bytes])?;
                thread::sleep(Duration::from_secs(3600));
                Ok(())
            }
            Manner::Limit(rate) => {
                let part = (rate / 100).max(1);
                for part in body.chunks(part) {
                    self.send(&mut stream, part)?;
                    thread::sleep(Duration::from_millis(10));
                }
                Ok(())
            }
            Manner::Drip(bytes, pause) => {
                for part in body.chunks(bytes) {
                    self.send(&mut stream, part)?;
                    thread::sleep(pause);
                }
                Ok(())
            }
            _ => self.send(&mut stream, body),
        }
    }

    fn send(&self, stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
        stream.write_all(bytes)?;
        *self.sent.lock().unwrap() += bytes.len();
        Ok(())
    }

    fn manner(&self, path: &str) -> Manner {
        let mut manners = self.manners.lock().unwrap();
        match manners.get_mut(path) {
            Some(list) if list.len() > 1 => list.pop().unwrap(),
            Some(list) => list[0].clone(),
            None => Manner::Fine,
        }
    }
}

/// `bytes=5-9`, `bytes=-4` → start and one past the end.
fn parse(range: &str, length: usize) -> Option<(usize, usize)> {
    let (start, end) = range.strip_prefix("bytes=")?.split_once('-')?;
    if start.is_empty() {
        return Some((length.saturating_sub(end.parse().ok()?), length));
    }
    Some((start.parse().ok()?, end.parse::<usize>().ok()?.min(length - 1) + 1))
}

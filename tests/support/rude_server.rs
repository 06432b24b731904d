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

struct Request {
    path: String,
    /// The `Range` header in lower case, or empty.
    range: String,
    /// The `If-Range` header in lower case, or empty.
    if_range: String,
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
        let request = self.read_request(&stream)?;
        let manner = self.manner(&request.path);
        let Some(file) = self.files.get(&request.path) else {
            return stream
                .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        };
        if let Some(response) = refusal(&manner, &request) {
            return stream.write_all(response.as_bytes());
        }
        let mut file = file.clone();
        if let Manner::Flip(at) = manner {
            file[at] ^= 1;
        }
        let (head, body) = head_and_body(&manner, &request, &file);
        stream.write_all(head.as_bytes())?;
        stream.write_all(b"Connection: close\r\n\r\n")?;
        self.send_body(&manner, &mut stream, body)
    }

    /// Reads and records a request.
    fn read_request(&self, stream: &TcpStream) -> std::io::Result<Request> {
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        let first = lines.next().unwrap_or(Ok(String::new()))?;
        let path = first.split(' ').nth(1).unwrap_or("/").to_owned();
        let mut request = Request { path, range: String::new(), if_range: String::new() };
        for line in lines {
            let line = line?;
            if line.is_empty() {
                break;
            }
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("range: ") {
                request.range = value.to_owned();
            }
            if let Some(value) = lower.strip_prefix("if-range: ") {
                request.if_range = value.to_owned();
            }
            self.headers.lock().unwrap().push(line);
        }
        self.asked.lock().unwrap().push(request.range.clone());
        Ok(request)
    }

    fn send_body(&self, manner: &Manner, stream: &mut TcpStream, body: &[u8]) -> std::io::Result<()> {
        match *manner {
            Manner::Cut(bytes) => self.send(stream, &body[..bytes.min(body.len())]),
            Manner::Stall(bytes) if bytes < body.len() => {
                self.send(stream, &body[..bytes])?;
                thread::sleep(Duration::from_secs(3600));
                Ok(())
            }
            Manner::Limit(rate) => {
                self.send_in_parts(stream, body, (rate / 100).max(1), Duration::from_millis(10))
            }
            Manner::Drip(bytes, pause) => self.send_in_parts(stream, body, bytes, pause),
            _ => self.send(stream, body),
        }
    }

    fn send_in_parts(
        &self,
        stream: &mut TcpStream,
        body: &[u8],
        size: usize,
        pause: Duration,
    ) -> std::io::Result<()> {
        for part in body.chunks(size) {
            self.send(stream, part)?;
            thread::sleep(pause);
        }
        Ok(())
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

/// The response of a server that does not send the file.
fn refusal(manner: &Manner, request: &Request) -> Option<String> {
    let (status, headers, body) = match *manner {
        Manner::Status(status, headers) => (format!("{status} Rude"), headers.to_owned(), "rude"),
        Manner::RefusesRanges(status) if !request.range.is_empty() => {
            (format!("{status} Rude"), String::new(), "")
        }
        Manner::NoSuffix(status) if request.range.starts_with("bytes=-") => {
            (format!("{status} Rude"), String::new(), "")
        }
        Manner::Html => ("200 OK".to_owned(), String::new(), "<!DOCTYPE html><html>Please log in</html>"),
        Manner::RedirectLoop => ("302 Found".to_owned(), format!("Location: {}\r\n", request.path), ""),
        _ => return None,
    };
    let length = body.len();
    Some(format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"))
}

/// The status and first headers of a response, and the part of the file that it sends.
fn head_and_body<'a>(manner: &Manner, request: &Request, file: &'a [u8]) -> (String, &'a [u8]) {
    let etag = match manner {
        Manner::Changed => "\"two\"",
        Manner::WeakTag => "W/\"one\"",
        _ => "\"one\"",
    };
    // With If-Range, a part of another version is never sent.
    let same = request.if_range.is_empty() || request.if_range == etag;
    let ranges = same && !matches!(manner, Manner::NoRanges | Manner::TooLong(_));
    let total = file.len();
    match ranges.then(|| parse(&request.range, total)).flatten() {
        None => {
            let length = total + if let Manner::TooLong(bytes) = manner { *bytes } else { 0 };
            (format!("HTTP/1.1 200 OK\r\nETag: {etag}\r\nContent-Length: {length}\r\n"), file)
        }
        Some((start, end)) => {
            let (length, last) = (end - start, end - 1);
            let head = format!(
                "HTTP/1.1 206 Partial Content\r\nETag: {etag}\r\nContent-Range: bytes {start}-{last}/{total}\r\nContent-Length: {length}\r\n"
            );
            (head, &file[start..end])
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

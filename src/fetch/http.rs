//! Byte ranges of a file on an HTTP server, resumed where they broke.
//! Only transient errors are tried again, with a growing pause; the time-out is for a connection on
//! which nothing comes, so a slow line may take as long as it needs. Proxies are those of
//! `HTTPS_PROXY` and its kin, certificates those of the system or of `SSL_CERT_FILE`.

use std::fmt;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use reqwest::blocking::{Client as Http, Response};
use reqwest::header::{ACCEPT_ENCODING, CONTENT_RANGE, ETAG, HeaderMap, RANGE, RETRY_AFTER};
use reqwest::{StatusCode, Url};

use super::{Event, FetchError, Progress};

/// How patient a client is.
#[derive(Debug, Clone)]
pub struct Policy {
    /// A connection on which no byte comes for this long is given up.
    pub stall: Duration,
    /// Attempts in a row without a new byte before the download fails.
    pub attempts: u32,
    /// The first pause; each following one is twice as long.
    pub first_pause: Duration,
    /// No pause is longer, whatever the server asks for.
    pub longest_pause: Duration,
    /// Connections at once for one large member.
    pub connections: usize,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            stall: Duration::from_secs(30),
            attempts: 6,
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(30),
            connections: 6,
        }
    }
}

/// An address as it may be shown: without user name, password and query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted(String);

impl Redacted {
    /// Strips what may be secret.
    pub fn new(url: &str) -> Self {
        match Url::parse(url) {
            Ok(mut url) => {
                // Both fail only for addresses that cannot hold credentials at all.
                let _ = url.set_username("");
                let _ = url.set_password(None);
                url.set_query(None);
                url.set_fragment(None);
                Self(url.into())
            }
            Err(_) => Self(url.rsplit('@').next().unwrap_or_default().to_owned()),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An HTTP client; clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    http: Http,
    pub(super) policy: Policy,
}

impl Client {
    /// A client with the system's certificates and proxies.
    ///
    /// # Errors
    /// When no certificate store can be read or a proxy variable is malformed.
    pub fn new(policy: Policy) -> Result<Self, FetchError> {
        // A second installation is refused and harmless: the first one serves.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = Http::builder()
            .user_agent(concat!("yolo/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(policy.stall)
            // In the blocking client this bounds the wait for the headers and each single read.
            .timeout(policy.stall)
            .build()
            .map_err(|error| FetchError::Client { why: chain(&error) })?;
        Ok(Self { http, policy })
    }

    /// The whole of a small text, at most `limit` bytes.
    ///
    /// # Errors
    /// As for every request; a longer text is refused.
    pub fn text(&self, url: &str, limit: u64, progress: &dyn Progress) -> Result<String, FetchError> {
        let remote = Remote::new(self.clone(), url)?;
        let mut text = String::new();
        let mut body = Body::whole(remote, progress).take(limit + 1);
        body.read_to_string(&mut text)
            .map_err(|error| FetchError::from_io(error, Redacted::new(url).as_str()))?;
        if text.len() as u64 > limit {
            return Err(FetchError::Refused {
                url: Redacted::new(url).to_string(),
                why: format!("the answer is longer than {limit} bytes"),
            });
        }
        Ok(text)
    }
}

/// One file on a server, with what is known of it so far.
#[derive(Debug, Clone)]
pub(super) struct Remote {
    client: Client,
    url: Url,
    pub(super) shown: Redacted,
    /// Length and strong validator, from the first answer; each later one is compared with it.
    identity: Arc<Mutex<Option<Identity>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    length: u64,
    etag: Option<String>,
}

/// What one request for a range brought.
enum Answer {
    Part(Response),
    Whole(Response),
}

/// Why one attempt failed, and whether the next may succeed.
enum Attempt {
    Final(FetchError),
    Transient { why: String, after: Option<Duration> },
}

impl Remote {
    pub(super) fn new(client: Client, url: &str) -> Result<Self, FetchError> {
        let shown = Redacted::new(url);
        let bad = |why: String| FetchError::Address { url: shown.to_string(), why };
        let parsed = Url::parse(url).map_err(|error| bad(error.to_string()))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(bad(format!("{} is not http or https", parsed.scheme())));
        }
        Ok(Self { client, url: parsed, shown, identity: Arc::default() })
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.client.policy
    }

    /// The length of the file and its last `count` bytes at most.
    /// Servers that know ranges but not suffixes are asked in two steps.
    pub(super) fn tail(&self, count: u64, progress: &dyn Progress) -> Result<(u64, Vec<u8>), FetchError> {
        let mut tries = Tries::new(self);
        loop {
            let attempt = match self.request(&format!("bytes=-{count}")) {
                Ok(Answer::Part(response)) => {
                    let (start, length) = self.placed(&response)?;
                    let mut bytes = Vec::new();
                    match response.take(count).read_to_end(&mut bytes) {
                        Ok(_) if start + bytes.len() as u64 == length => return Ok((length, bytes)),
                        Ok(_) => Attempt::transient("the answer was shorter than announced"),
                        Err(error) => Attempt::transient(chain(&error)),
                    }
                }
                Ok(Answer::Whole(_)) => return Err(self.no_ranges()),
                Err(Attempt::Final(FetchError::Status { status: 400 | 416 | 501, .. })) => break,
                Err(attempt) => attempt,
            };
            tries.failed(attempt, progress)?;
        }
        let mut one = Body::range(self.clone(), 0, 1, progress);
        one.read_to_end(&mut Vec::new()).map_err(|error| FetchError::from_io(error, self.shown.as_str()))?;
        let known = self.identity.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let length = known.ok_or_else(|| self.no_ranges())?.length;
        let mut bytes = Vec::new();
        Body::range(self.clone(), length.saturating_sub(count), length, progress)
            .read_to_end(&mut bytes)
            .map_err(|error| FetchError::from_io(error, self.shown.as_str()))?;
        Ok((length, bytes))
    }

    fn no_ranges(&self) -> FetchError {
        FetchError::NoRanges { url: self.shown.to_string() }
    }

    /// One request. `range` is the header's value, empty for the whole file.
    fn request(&self, range: &str) -> Result<Answer, Attempt> {
        // A compressed transfer would shift every offset.
        let mut request = self.client.http.get(self.url.clone()).header(ACCEPT_ENCODING, "identity");
        if !range.is_empty() {
            request = request.header(RANGE, range);
        }
        let response = request.send().map_err(|error| self.classify(&error))?;
        let status = response.status();
        match status {
            StatusCode::PARTIAL_CONTENT => Ok(Answer::Part(response)),
            StatusCode::OK => Ok(Answer::Whole(response)),
            StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::INTERNAL_SERVER_ERROR
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Err(Attempt::Transient {
                why: format!("the server answered {status}"),
                after: retry_after(response.headers()),
            }),
            _ => Err(Attempt::Final(FetchError::Status {
                url: self.shown.to_string(),
                status: status.as_u16(),
                hint: status_hint(status),
            })),
        }
    }

    fn classify(&self, error: &reqwest::Error) -> Attempt {
        let why = chain(error);
        let refused = |why: String| Attempt::Final(FetchError::Refused { url: self.shown.to_string(), why });
        if error.is_redirect() {
            refused(format!("too many redirects: {why}"))
        } else if why.contains("certificate") {
            refused(format!("{why}; if a proxy signs its own certificates, name them in SSL_CERT_FILE"))
        } else if error.is_builder() || error.is_request() && why.contains("invalid") {
            refused(why)
        } else {
            Attempt::transient(why)
        }
    }

    /// Start and total length out of `Content-Range`, compared with earlier answers.
    fn placed(&self, response: &Response) -> Result<(u64, u64), FetchError> {
        let text = response.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
        let parsed = text.and_then(parse_content_range).ok_or_else(|| FetchError::Refused {
            url: self.shown.to_string(),
            why: format!("the server sent a part without a usable Content-Range ({text:?})"),
        })?;
        let etag = response.headers().get(ETAG).and_then(|value| value.to_str().ok());
        // A weak validator (W/"…") promises nothing about bytes.
        let etag = etag.filter(|tag| !tag.starts_with("W/")).map(str::to_owned);
        self.same_file(Identity { length: parsed.1, etag })?;
        Ok(parsed)
    }

    fn same_file(&self, now: Identity) -> Result<(), FetchError> {
        let mut known = self.identity.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(before) = known.as_ref() else {
            *known = Some(now);
            return Ok(());
        };
        let what = if before.length != now.length {
            format!("{} bytes, then {}", before.length, now.length)
        } else if before.etag.is_some() && now.etag.is_some() && before.etag != now.etag {
            "another ETag".to_owned()
        } else {
            return Ok(());
        };
        Err(FetchError::Changed { url: self.shown.to_string(), what })
    }
}

impl Attempt {
    fn transient(why: impl Into<String>) -> Self {
        Self::Transient { why: why.into(), after: None }
    }
}

/// Counts the attempts without progress and pauses between them.
struct Tries {
    shown: Redacted,
    policy: Policy,
    count: u32,
}

impl Tries {
    fn new(remote: &Remote) -> Self {
        Self { shown: remote.shown.clone(), policy: remote.policy().clone(), count: 0 }
    }

    fn failed(&mut self, attempt: Attempt, progress: &dyn Progress) -> Result<(), FetchError> {
        let (why, after) = match attempt {
            Attempt::Final(error) => return Err(error),
            Attempt::Transient { why, after } => (why, after),
        };
        self.count += 1;
        if self.count >= self.policy.attempts {
            return Err(FetchError::Transport { url: self.shown.to_string(), why, attempts: self.count });
        }
        let doubled = self.policy.first_pause.saturating_mul(1 << (self.count - 1).min(16));
        let pause = after.unwrap_or(doubled).min(self.policy.longest_pause);
        progress.event(Event::Retry { why: &format!("{}: {why}", self.shown), after: pause });
        thread::sleep(pause);
        Ok(())
    }
}

/// The bytes of a range, in order; breaks are mended inside.
pub(super) struct Body<'p> {
    remote: Remote,
    progress: &'p dyn Progress,
    position: u64,
    /// One past the last byte; `None` for a whole file of unknown length.
    end: Option<u64>,
    ranged: bool,
    open: Option<Response>,
    tries: Tries,
}

impl<'p> Body<'p> {
    /// Bytes `start..end`.
    pub(super) fn range(remote: Remote, start: u64, end: u64, progress: &'p dyn Progress) -> Self {
        let tries = Tries::new(&remote);
        Self { remote, progress, position: start, end: Some(end), ranged: true, open: None, tries }
    }

    /// The whole file, asked for without ranges: after a break the bytes that came before are
    /// read once more and dropped.
    pub(super) fn whole(remote: Remote, progress: &'p dyn Progress) -> Self {
        let tries = Tries::new(&remote);
        Self { remote, progress, position: 0, end: None, ranged: false, open: None, tries }
    }

    /// Length of the file, once the first byte has come and if the server tells.
    pub(super) fn length(&self) -> Option<u64> {
        self.end
    }

    fn connect(&mut self) -> Result<Response, Attempt> {
        if !self.ranged {
            return self.connect_whole();
        }
        // The end is always known for a range.
        let end = self.end.unwrap_or(u64::MAX);
        match self.remote.request(&format!("bytes={}-{}", self.position, end - 1))? {
            Answer::Whole(_) => Err(Attempt::Final(self.remote.no_ranges())),
            Answer::Part(response) => {
                let (start, _) = self.remote.placed(&response).map_err(Attempt::Final)?;
                if start == self.position {
                    return Ok(response);
                }
                Err(Attempt::Final(FetchError::Refused {
                    url: self.remote.shown.to_string(),
                    why: format!("asked for bytes from {}, the server sent from {start}", self.position),
                }))
            }
        }
    }

    fn connect_whole(&mut self) -> Result<Response, Attempt> {
        let (Answer::Whole(mut response) | Answer::Part(mut response)) = self.remote.request("")?;
        if let Some(length) = response.content_length() {
            let etag = response.headers().get(ETAG).and_then(|value| value.to_str().ok());
            let etag = etag.filter(|tag| !tag.starts_with("W/")).map(str::to_owned);
            self.remote.same_file(Identity { length, etag }).map_err(Attempt::Final)?;
            self.end = Some(length);
        }
        let again = self.position;
        match io::copy(&mut (&mut response).take(again), &mut io::sink()) {
            Ok(dropped) if dropped == again => Ok(response),
            Ok(_) => Err(Attempt::transient("the answer ended before the place of the last break")),
            Err(error) => Err(Attempt::transient(chain(&error))),
        }
    }
}

impl Read for Body<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.end.map_or(u64::MAX, |end| end - self.position);
        if left == 0 || buffer.is_empty() {
            return Ok(0);
        }
        let want = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        loop {
            let response = match self.open.take() {
                Some(response) => Ok(response),
                None => self.connect(),
            };
            // The first answer may have told the length: an empty file is complete at once.
            if self.end == Some(self.position) {
                return Ok(0);
            }
            let failed = match response {
                Err(failed) => failed,
                Ok(mut response) => match response.read(&mut buffer[..want]) {
                    Ok(0) if self.end.is_none() => return Ok(0),
                    Ok(0) => Attempt::transient("the connection ended early"),
                    Ok(count) => {
                        self.position += count as u64;
                        self.tries.count = 0;
                        self.open = Some(response);
                        return Ok(count);
                    }
                    Err(error) => Attempt::transient(chain(&error)),
                },
            };
            self.tries.failed(failed, self.progress)?;
        }
    }
}

/// `bytes 0-99/1234` → (0, 1234).
fn parse_content_range(text: &str) -> Option<(u64, u64)> {
    let (range, total) = text.trim().strip_prefix("bytes")?.trim_start().split_once('/')?;
    let (start, _) = range.split_once('-')?;
    Some((start.trim().parse().ok()?, total.trim().parse().ok()?))
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    // The other form, a date, is rare; the usual pause serves there.
    Some(Duration::from_secs(headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?))
}

fn status_hint(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "; check the credentials of your index or proxy",
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => "; put the proxy's user and password into HTTPS_PROXY",
        StatusCode::NOT_FOUND | StatusCode::GONE => "; the file is not there",
        _ => "",
    }
}

/// The error with its causes in one line. The address is left out: it may hold credentials.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = match error.downcast_ref::<reqwest::Error>() {
            Some(error) if error.is_timeout() => "nothing came for too long (stalled)".to_owned(),
            Some(error) => without_address(&error.to_string()),
            None => error.to_string(),
        };
        if !text.is_empty() && parts.last() != Some(&text) {
            parts.push(text);
        }
        next = error.source();
    }
    parts.join(": ")
}

/// reqwest writes "… for url (https://user:password@host/…)".
fn without_address(text: &str) -> String {
    match text.find(" for url (") {
        Some(at) => text[..at].to_owned(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_an_address_are_not_shown() {
        let shown = Redacted::new("https://me:secret@index.example/simple/torch.whl?token=x#sha256=y");
        assert_eq!(shown.as_str(), "https://index.example/simple/torch.whl");
        assert_eq!(Redacted::new("no url me:secret@host/x").as_str(), "host/x");
    }

    #[test]
    fn content_range_is_read() {
        assert_eq!(parse_content_range("bytes 5-9/100"), Some((5, 100)));
        assert_eq!(parse_content_range("bytes */100"), None);
        assert_eq!(parse_content_range("bytes 5-9/*"), None);
    }
}

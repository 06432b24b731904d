//! Reads the bytes of one range in order, and reconnects where a connection broke. Only transient errors
//! are retried; the count of attempts restarts with every byte that arrives.

use std::io::{self, Read};

use reqwest::blocking::Response;

use super::client::Client;
use super::error::FetchError;
use super::error_chain::chain;
use super::progress::Progress;
use super::redacted::Redacted;
use super::remote_file::{Answer, Identity, RemoteFile, validator};
use super::retry::{AttemptError, Retries};

/// The bytes of a range in order. Reconnects by itself.
pub(super) struct Body<'p> {
    remote: RemoteFile,
    progress: &'p dyn Progress,
    position: u64,
    /// One past the last byte; `None` for a whole file of unknown length.
    end: Option<u64>,
    ranged: bool,
    open: Option<Response>,
    tries: Retries,
}

impl<'p> Body<'p> {
    /// Bytes `start..end`.
    pub(super) fn range(remote: RemoteFile, start: u64, end: u64, progress: &'p dyn Progress) -> Self {
        let tries = Retries::new(&remote.shown, remote.policy());
        Self { remote, progress, position: start, end: Some(end), ranged: true, open: None, tries }
    }

    /// The whole file, requested without ranges: after a break, the bytes before it are read again and
    /// dropped.
    pub(super) fn whole(remote: RemoteFile, progress: &'p dyn Progress) -> Self {
        let tries = Retries::new(&remote.shown, remote.policy());
        Self { remote, progress, position: 0, end: None, ranged: false, open: None, tries }
    }

    /// The length of the file, once the first byte has arrived and if the server reports it.
    pub(super) fn length(&self) -> Option<u64> {
        self.end
    }

    fn connect(&mut self) -> Result<Response, AttemptError> {
        if !self.ranged {
            return self.connect_whole();
        }
        // The end is always known for a range.
        let end = self.end.unwrap_or(u64::MAX);
        match self.remote.request(&format!("bytes={}-{}", self.position, end - 1))? {
            Answer::Whole(_) => Err(AttemptError::Final(self.remote.no_ranges())),
            Answer::Part(response) => {
                let (start, _) = self.remote.placed(&response).map_err(AttemptError::Final)?;
                if start == self.position {
                    return Ok(response);
                }
                Err(AttemptError::Final(FetchError::Refused {
                    url: self.remote.shown.to_string(),
                    why: format!(
                        "requested bytes from {}, but the server sent bytes from {start}",
                        self.position
                    ),
                }))
            }
        }
    }

    fn connect_whole(&mut self) -> Result<Response, AttemptError> {
        let (Answer::Whole(mut response) | Answer::Part(mut response)) = self.remote.request("")?;
        if let Some(length) = response.content_length() {
            let now = Identity { length, validator: validator(response.headers()) };
            self.remote.same_file(now).map_err(AttemptError::Final)?;
            self.end = Some(length);
        }
        let again = self.position;
        match io::copy(&mut (&mut response).take(again), &mut io::sink()) {
            Ok(dropped) if dropped == again => Ok(response),
            Ok(_) => Err(AttemptError::transient("the response ended before the position of the last break")),
            Err(error) => Err(AttemptError::transient(chain(&error))),
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
            // The first response may have reported the length: an empty file is complete at once.
            if self.end == Some(self.position) {
                return Ok(0);
            }
            let failed = match response {
                Err(failed) => failed,
                Ok(mut response) => match response.read(&mut buffer[..want]) {
                    Ok(0) if self.end.is_none() => return Ok(0),
                    Ok(0) => AttemptError::transient("the connection ended early"),
                    Ok(count) => {
                        self.position += count as u64;
                        self.tries.reset();
                        self.open = Some(response);
                        return Ok(count);
                    }
                    Err(error) => AttemptError::transient(chain(&error)),
                },
            };
            self.tries.failed(failed, self.progress)?;
        }
    }
}

/// Downloads a small text of at most `limit` bytes.
///
/// # Errors
/// As for every request, or when the text is longer.
pub fn fetch_text(
    client: &Client,
    url: &str,
    limit: u64,
    progress: &dyn Progress,
) -> Result<String, FetchError> {
    let remote = RemoteFile::new(client.clone(), url)?;
    let mut text = String::new();
    let mut body = Body::whole(remote, progress).take(limit + 1);
    body.read_to_string(&mut text)
        .map_err(|error| FetchError::from_io(error, Redacted::new(url).as_str()))?;
    if text.len() as u64 > limit {
        return Err(FetchError::Refused {
            url: Redacted::new(url).to_string(),
            why: format!("the response is longer than {limit} bytes"),
        });
    }
    Ok(text)
}

/// The length of the file and at most its last `count` bytes. Servers that support ranges but not suffix
/// ranges are asked in two steps.
pub(super) fn fetch_tail(
    remote: &RemoteFile,
    count: u64,
    progress: &dyn Progress,
) -> Result<(u64, Vec<u8>), FetchError> {
    let mut tries = Retries::new(&remote.shown, remote.policy());
    loop {
        let attempt = match remote.request(&format!("bytes=-{count}")) {
            Ok(Answer::Part(response)) => {
                let (start, length) = remote.placed(&response)?;
                let mut bytes = Vec::new();
                match response.take(count).read_to_end(&mut bytes) {
                    Ok(_) if start + bytes.len() as u64 == length => return Ok((length, bytes)),
                    Ok(_) => AttemptError::transient("the response was shorter than announced"),
                    Err(error) => AttemptError::transient(chain(&error)),
                }
            }
            Ok(Answer::Whole(_)) => return Err(remote.no_ranges()),
            Err(AttemptError::Final(FetchError::Status { status: 400 | 416 | 501, .. })) => break,
            Err(attempt) => attempt,
        };
        tries.failed(attempt, progress)?;
    }
    let broken = |error: io::Error| FetchError::from_io(error, remote.shown.as_str());
    Body::range(remote.clone(), 0, 1, progress).read_to_end(&mut Vec::new()).map_err(|error| {
        match broken(error) {
            // It rejects all ranges, but may still serve the whole file.
            FetchError::Status { status: 400 | 416 | 501, .. } => remote.no_ranges(),
            error => error,
        }
    })?;
    let length = remote.identity().ok_or_else(|| remote.no_ranges())?.length;
    let mut bytes = Vec::new();
    Body::range(remote.clone(), length.saturating_sub(count), length, progress)
        .read_to_end(&mut bytes)
        .map_err(broken)?;
    Ok((length, bytes))
}

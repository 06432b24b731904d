//! The bytes of one range, in order: a connection that breaks is made again where it broke.
//! Only transient errors are tried again, with a growing pause or the one that the server asks for,
//! and the count of attempts begins anew with every byte that comes.

use std::io::{self, Read};
use std::thread;
use std::time::Duration;

use reqwest::blocking::Response;

use super::http::{Policy, Redacted};
use super::remote::{Answer, Attempt, Identity, Remote, chain, validator};
use super::{Event, FetchError, Progress};

/// Counts the attempts without progress and pauses between them.
pub(super) struct Tries {
    shown: Redacted,
    policy: Policy,
    count: u32,
}

impl Tries {
    pub(super) fn new(remote: &Remote) -> Self {
        Self { shown: remote.shown.clone(), policy: remote.policy().clone(), count: 0 }
    }

    pub(super) fn failed(&mut self, attempt: Attempt, progress: &dyn Progress) -> Result<(), FetchError> {
        let (why, after) = match attempt {
            Attempt::Final(error) => return Err(error),
            Attempt::Transient { why, after } => (why, after),
        };
        self.count += 1;
        if self.count >= self.policy.attempts {
            return Err(FetchError::Transport { url: self.shown.to_string(), why, attempts: self.count });
        }
        if let Some(wait) = after.filter(|wait| *wait > self.policy.longest_wait) {
            let why = format!("{why} and asks to come back in {} s; try again then", wait.as_secs());
            return Err(FetchError::Refused { url: self.shown.to_string(), why });
        }
        let doubled = self.policy.first_pause.saturating_mul(1 << (self.count - 1).min(16));
        let pause = after.unwrap_or(doubled.min(self.policy.longest_pause)).max(Duration::from_millis(1));
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
            let now = Identity { length, validator: validator(response.headers()) };
            self.remote.same_file(now).map_err(Attempt::Final)?;
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

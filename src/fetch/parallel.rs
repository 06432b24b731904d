//! One long range read over several connections, delivered in order.
//! The range is cut into chunks; as many as the window holds are fetched or wait to be read, so
//! memory is bounded however fast the line is.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use super::body::Body;
use super::remote::Remote;
use super::{Event, FetchError, Progress};

/// Bytes of one request. Large enough that a request's round trip is small beside it.
const CHUNK: u64 = 2 << 20;

/// Ranges shorter than this are read over one connection.
pub(super) const WORTH_IT: u64 = 2 * CHUNK;

/// A range under way.
pub(super) struct Parallel<'p> {
    shared: Arc<Shared>,
    progress: &'p dyn Progress,
    current: Vec<u8>,
    used: usize,
}

struct Shared {
    remote: Remote,
    start: u64,
    end: u64,
    window: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The next chunk that no worker has taken.
    untaken: u64,
    /// The next chunk that the reader wants.
    wanted: u64,
    ready: BTreeMap<u64, Result<Vec<u8>, FetchError>>,
    /// What the workers would like to tell; the reader's thread passes it on.
    retries: Vec<(String, std::time::Duration)>,
    cancelled: bool,
}

impl<'p> Parallel<'p> {
    /// Starts to fetch bytes `start..end`.
    pub(super) fn range(remote: Remote, start: u64, end: u64, progress: &'p dyn Progress) -> Self {
        let workers = remote.policy().connections.max(1);
        let shared = Arc::new(Shared {
            remote,
            start,
            end,
            window: workers as u64 + 2,
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        for _ in 0..workers.min(shared.chunks() as usize) {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.work());
        }
        Self { shared, progress, current: Vec::new(), used: 0 }
    }

    fn next_chunk(&mut self) -> Result<bool, FetchError> {
        let mut state = self.shared.lock();
        if state.wanted == self.shared.chunks() {
            return Ok(false);
        }
        loop {
            for (why, after) in std::mem::take(&mut state.retries) {
                self.progress.event(Event::Retry { why: &why, after });
            }
            let wanted = state.wanted;
            if let Some(chunk) = state.ready.remove(&wanted) {
                self.current = chunk?;
                self.used = 0;
                state.wanted += 1;
                self.shared.changed.notify_all();
                return Ok(true);
            }
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Read for Parallel<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.used == self.current.len() && !self.next_chunk()? {
            return Ok(0);
        }
        let count = buffer.len().min(self.current.len() - self.used);
        buffer[..count].copy_from_slice(&self.current[self.used..self.used + count]);
        self.used += count;
        Ok(count)
    }
}

impl Drop for Parallel<'_> {
    fn drop(&mut self) {
        // Workers end after the read they are in; nobody waits for them.
        self.shared.lock().cancelled = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn chunks(&self) -> u64 {
        (self.end - self.start).div_ceil(CHUNK)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes chunks until there are none, or until the reader is gone.
    fn work(&self) {
        loop {
            let mut state = self.lock();
            while !state.cancelled && state.untaken >= state.wanted + self.window {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.cancelled || state.untaken == self.chunks() {
                return;
            }
            let chunk = state.untaken;
            state.untaken += 1;
            drop(state);
            let bytes = self.fetch(chunk);
            let mut state = self.lock();
            // After a failure the other chunks are of no use.
            state.cancelled |= bytes.is_err();
            if bytes.is_err() {
                // The reader may wait for an earlier chunk that will now not come.
                let wanted = state.wanted;
                state.ready.insert(wanted, bytes);
            } else {
                state.ready.entry(chunk).or_insert(bytes);
            }
            self.changed.notify_all();
        }
    }

    fn fetch(&self, chunk: u64) -> Result<Vec<u8>, FetchError> {
        let from = self.start + chunk * CHUNK;
        let to = self.end.min(from + CHUNK);
        let mut bytes = vec![0; (to - from) as usize];
        let mut body = Body::range(self.remote.clone(), from, to, self);
        let mut filled = 0;
        while filled < bytes.len() {
            if self.lock().cancelled {
                return Ok(Vec::new());
            }
            match body.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) => return Err(FetchError::from_io(error, self.remote.shown.as_str())),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}

impl Progress for Shared {
    fn event(&self, event: Event<'_>) {
        if let Event::Retry { why, after } = event {
            self.lock().retries.push((why.to_owned(), after));
            self.changed.notify_all();
        }
    }
}

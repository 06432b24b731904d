//! Reads one long range over several connections and delivers it in order. The range is split into
//! chunks, of which at most a window is in memory, so that memory stays bounded.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use super::body::Body;
use super::error::FetchError;
use super::progress::{Progress, ProgressEvent};
use super::remote_file::RemoteFile;

/// Bytes per request: large enough that the round trip hardly matters.
const CHUNK: u64 = 2 << 20;

/// Ranges shorter than this are read over one connection.
pub(super) const WORTH_IT: u64 = 2 * CHUNK;

/// A range in progress.
pub(super) struct Parallel<'p> {
    shared: Arc<Shared>,
    progress: &'p dyn Progress,
    current: Vec<u8>,
    used: usize,
    /// The error that ended the current chunk.
    failed: Option<FetchError>,
}

struct Shared {
    remote: RemoteFile,
    start: u64,
    end: u64,
    window: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The next chunk that no worker has claimed.
    untaken: u64,
    /// The next chunk that the reader needs.
    wanted: u64,
    ready: BTreeMap<u64, Chunk>,
    /// The first chunk that failed. Those before it are still downloaded, so that they can be kept.
    failed_at: Option<u64>,
    /// Retries that the workers report; the reader's thread passes them on.
    retries: Vec<(String, std::time::Duration)>,
    canceled: bool,
}

/// The bytes of a chunk, and the error that ended it early.
struct Chunk {
    bytes: Vec<u8>,
    failed: Option<FetchError>,
}

impl<'p> Parallel<'p> {
    /// Starts to download bytes `start..end`.
    pub(super) fn range(remote: RemoteFile, start: u64, end: u64, progress: &'p dyn Progress) -> Self {
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
        Self { shared, progress, current: Vec::new(), used: 0, failed: None }
    }

    fn next_chunk(&mut self) -> Result<bool, FetchError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut state = self.shared.lock();
        if state.wanted == self.shared.chunks() {
            return Ok(false);
        }
        loop {
            for (why, after) in std::mem::take(&mut state.retries) {
                self.progress.event(ProgressEvent::Retry { why: &why, after });
            }
            let wanted = state.wanted;
            if let Some(chunk) = state.ready.remove(&wanted) {
                self.current = chunk.bytes;
                self.used = 0;
                self.failed = chunk.failed;
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
        // A chunk that failed immediately has no bytes.
        while self.used == self.current.len() {
            if !self.next_chunk()? {
                return Ok(0);
            }
        }
        let count = buffer.len().min(self.current.len() - self.used);
        buffer[..count].copy_from_slice(&self.current[self.used..self.used + count]);
        self.used += count;
        Ok(count)
    }
}

impl Drop for Parallel<'_> {
    fn drop(&mut self) {
        // Workers exit after their current read; nothing waits for them.
        self.shared.lock().canceled = true;
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

    /// Claims chunks until there are none left or the reader is dropped.
    fn work(&self) {
        loop {
            let mut state = self.lock();
            while !state.canceled && state.failed_at.is_none() && state.untaken >= state.wanted + self.window
            {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.canceled || state.failed_at.is_some() || state.untaken == self.chunks() {
                return;
            }
            let chunk = state.untaken;
            state.untaken += 1;
            drop(state);
            let fetched = self.fetch(chunk);
            let mut state = self.lock();
            if fetched.failed.is_some() {
                state.failed_at = Some(state.failed_at.map_or(chunk, |before| before.min(chunk)));
            }
            state.ready.insert(chunk, fetched);
            self.changed.notify_all();
        }
    }

    fn fetch(&self, chunk: u64) -> Chunk {
        let from = self.start + chunk * CHUNK;
        let to = self.end.min(from + CHUNK);
        let mut bytes = vec![0; (to - from) as usize];
        let mut body = Body::range(self.remote.clone(), from, to, self);
        let (mut filled, mut failed) = (0, None);
        while filled < bytes.len() {
            let state = self.lock();
            // Chunks after a failed one are not read.
            if state.canceled || state.failed_at.is_some_and(|first| first < chunk) {
                break;
            }
            drop(state);
            match body.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) => {
                    failed = Some(FetchError::from_io(error, self.remote.shown.as_str()));
                    break;
                }
            }
        }
        bytes.truncate(filled);
        Chunk { bytes, failed }
    }
}

impl Progress for Shared {
    fn event(&self, event: ProgressEvent<'_>) {
        if let ProgressEvent::Retry { why, after } = event {
            self.lock().retries.push((why.to_owned(), after));
            self.changed.notify_all();
        }
    }
}

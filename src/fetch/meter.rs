//! Readers that look on: they count for the progress, hash, or count for the unpacking.

use std::io::{self, BufRead, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};

use super::http::Body;
use super::{Event, Progress};

/// Sums the bytes of several downloads into one progress.
pub struct Meter<'p> {
    pub(super) progress: &'p dyn Progress,
    done: AtomicU64,
    total: AtomicU64,
}

impl<'p> Meter<'p> {
    /// A meter that stands at zero.
    pub fn new(progress: &'p dyn Progress) -> Self {
        Self { progress, done: AtomicU64::new(0), total: AtomicU64::new(0) }
    }

    /// More bytes are expected.
    pub fn expect(&self, bytes: u64) {
        self.total.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that came so far.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let total = self.total.load(Ordering::Relaxed);
        self.progress.event(Event::Bytes { done, total: (total >= done).then_some(total) });
    }
}

/// Tells the meter each byte.
pub(super) struct Counting<'a, 'p, R> {
    pub(super) inner: R,
    pub(super) meter: &'a Meter<'p>,
}

impl<R: Read> Read for Counting<'_, '_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.meter.add(count as u64);
        Ok(count)
    }
}

/// Tells the meter the length once, as soon as the server has told it.
pub(super) struct Announcing<'a, 'p> {
    pub(super) body: Body<'a>,
    pub(super) meter: &'a Meter<'p>,
    pub(super) announced: bool,
}

impl Read for Announcing<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.body.read(buffer)?;
        if let (false, Some(length)) = (self.announced, self.body.length()) {
            self.meter.expect(length);
            self.announced = true;
        }
        Ok(count)
    }
}

/// Hashes all that is read.
pub(super) struct Hashing<R> {
    pub(super) inner: R,
    pub(super) sha: Sha256,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.sha.update(&buffer[..count]);
        Ok(count)
    }
}

/// Counts what is consumed of a buffered reader.
pub(super) struct CountingBuf<'a, R> {
    pub(super) inner: &'a mut R,
    pub(super) count: u64,
}

impl<R: BufRead> Read for CountingBuf<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.count += count as u64;
        Ok(count)
    }
}

impl<R: BufRead> BufRead for CountingBuf<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.count += amount as u64;
        self.inner.consume(amount);
    }
}

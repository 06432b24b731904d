//! Byte counts for the progress, and readers that count or hash what passes through them.

use std::io::{self, BufRead, Read};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::body::Body;
use super::progress::{Progress, ProgressEvent};
use super::sha256::Sha256;

/// Adds up the bytes of several downloads into one progress.
pub struct Meter<'p> {
    pub(super) progress: &'p dyn Progress,
    done: AtomicU64,
    total: AtomicU64,
    files: AtomicUsize,
}

impl<'p> Meter<'p> {
    /// A meter at zero.
    pub fn new(progress: &'p dyn Progress) -> Self {
        Self { progress, done: AtomicU64::new(0), total: AtomicU64::new(0), files: AtomicUsize::new(0) }
    }

    /// Passes an event on.
    pub fn note(&self, event: ProgressEvent<'_>) {
        self.progress.event(event);
    }

    /// More bytes are expected.
    pub fn expect(&self, bytes: u64) {
        self.total.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that have arrived so far.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// The meter of one file, which is also reported separately.
    pub(super) fn file(&self, name: &str, total: Option<u64>) -> FileMeter<'_, 'p> {
        FileMeter {
            meter: self,
            id: self.files.fetch_add(1, Ordering::Relaxed),
            name: name.to_owned(),
            done: AtomicU64::new(0),
            total: AtomicU64::new(total.unwrap_or(0)),
        }
    }

    fn add(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let total = self.total.load(Ordering::Relaxed);
        self.progress.event(ProgressEvent::Bytes { done, total: (total >= done).then_some(total) });
    }

    /// Subtracts bytes that will be downloaded again.
    fn take_back(&self, bytes: u64) {
        self.done.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The bytes of one file, which also count in the meter.
pub(super) struct FileMeter<'m, 'p> {
    meter: &'m Meter<'p>,
    id: usize,
    name: String,
    done: AtomicU64,
    total: AtomicU64,
}

impl<'p> FileMeter<'_, 'p> {
    pub(super) fn progress(&self) -> &'p dyn Progress {
        self.meter.progress
    }

    /// The length has become known.
    pub(super) fn expect(&self, bytes: u64) {
        self.total.fetch_add(bytes, Ordering::Relaxed);
        self.meter.expect(bytes);
    }

    /// Everything will be downloaded again.
    pub(super) fn restart(&self) {
        self.meter.take_back(self.done.swap(0, Ordering::Relaxed));
    }

    /// The file is complete.
    pub(super) fn finish(&self) {
        self.report(true);
    }

    fn report(&self, over: bool) {
        let (done, total) = (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
        let total = (total >= done && total > 0).then_some(total);
        self.meter.progress.event(ProgressEvent::File { id: self.id, name: &self.name, done, total, over });
    }
}

impl Drop for FileMeter<'_, '_> {
    fn drop(&mut self) {
        self.report(true);
    }
}

/// Something that counts bytes.
pub(super) trait Tally: Sync {
    fn add(&self, bytes: u64);
}

impl Tally for Meter<'_> {
    fn add(&self, bytes: u64) {
        Self::add(self, bytes);
    }
}

impl Tally for FileMeter<'_, '_> {
    fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
        self.report(false);
        self.meter.add(bytes);
    }
}

/// Counts all bytes that are read.
pub(super) struct CountingReader<'a, R> {
    pub(super) inner: R,
    pub(super) tally: &'a dyn Tally,
}

impl<R: Read> Read for CountingReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.tally.add(count as u64);
        Ok(count)
    }
}

/// Reports the length to the file's meter, as soon as the server has reported it.
pub(super) struct AnnouncingReader<'a, 'm, 'p> {
    pub(super) body: Body<'a>,
    pub(super) file: &'a FileMeter<'m, 'p>,
    pub(super) announced: bool,
}

impl Read for AnnouncingReader<'_, '_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.body.read(buffer)?;
        if let (false, Some(length)) = (self.announced, self.body.length()) {
            self.file.expect(length);
            self.announced = true;
        }
        Ok(count)
    }
}

/// Hashes all bytes that are read.
pub(super) struct HashingReader<R> {
    pub(super) inner: R,
    pub(super) sha: Sha256,
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.sha.update(&buffer[..count]);
        Ok(count)
    }
}

/// Counts the bytes consumed from a buffered reader.
pub(super) struct CountingBufReader<'a, R> {
    pub(super) inner: &'a mut R,
    pub(super) count: u64,
}

impl<R: BufRead> Read for CountingBufReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.count += count as u64;
        Ok(count)
    }
}

impl<R: BufRead> BufRead for CountingBufReader<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.count += amount as u64;
        self.inner.consume(amount);
    }
}

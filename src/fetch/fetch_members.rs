//! Downloads and unpacks the selected members of archives: a few ranges at a time over all archives, the
//! longest first, so that the slowest begins at once and memory stays bounded.

use std::collections::HashMap;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::archive::{Archive, BUFFER, Selection, Span, UnpackedMember};
use super::central_directory::{self, Entry, LOCAL, LocalHeader};
use super::error::FetchError;
use super::meter::{CountingBufReader, CountingReader, FileMeter, Meter, Tally};
use super::partial_file::PartialFile;
use super::resume::ResumeState;
use super::unpack;

/// Ranges that are downloaded and unpacked at the same time.
const AT_ONCE: usize = 3;

/// An archive and the members to download from it.
#[derive(Debug, Clone, Copy)]
pub struct MemberFetch<'a> {
    /// The archive.
    pub archive: &'a Archive,
    /// The members.
    pub selection: &'a Selection,
    /// The hash of the whole archive, if known. Then members that an earlier run downloaded from another
    /// source count too.
    pub sha256: Option<&'a str>,
}

/// A [`MemberFetch`] in progress.
struct Job<'a, 'm, 'p> {
    take: MemberFetch<'a>,
    meter: OnceLock<FileMeter<'m, 'p>>,
    spans_left: AtomicUsize,
}

/// Members by the index of their archive, and the first failure.
type Results = (HashMap<usize, Vec<UnpackedMember>>, Option<FetchError>);

/// Downloads the selected members, unpacks them into `into`, and returns them by archive. With `parts`,
/// an interrupted run is resumed, and this one can be resumed.
///
/// # Errors
/// When the download fails finally, the bytes are wrong, or the disk fails.
pub fn fetch_members(
    takes: &[MemberFetch<'_>],
    into: &Path,
    parts: Option<&ResumeState>,
    meter: &Meter<'_>,
) -> Result<Vec<Vec<UnpackedMember>>, FetchError> {
    let jobs: Vec<Job<'_, '_, '_>> = takes
        .iter()
        .map(|&take| {
            let spans_left = AtomicUsize::new(take.selection.spans.len());
            Job { take, meter: OnceLock::new(), spans_left }
        })
        .collect();
    let mut queue: Vec<(usize, &Span)> = Vec::new();
    for (index, take) in takes.iter().enumerate() {
        queue.extend(take.selection.spans.iter().map(|span| (index, span)));
    }
    // Popped from the end, so that the longest begins first.
    queue.sort_by_key(|(_, span)| span.end - span.start);
    let workers = AT_ONCE.min(queue.len());
    let queue = Mutex::new(queue);
    let results: Mutex<Results> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
                    let Some((index, span)) = next else { return };
                    let result = jobs[index].span(span, into, parts, meter);
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    match result {
                        Ok(unpacked) => results.0.entry(index).or_default().extend(unpacked),
                        Err(error) => {
                            // Only the first failure is reported; the other workers stop soon.
                            results.1.get_or_insert(error);
                            queue.lock().unwrap_or_else(PoisonError::into_inner).clear();
                        }
                    }
                }
            });
        }
    });
    match results.into_inner().unwrap_or_else(PoisonError::into_inner) {
        (_, Some(error)) => Err(error),
        (mut by_archive, None) => {
            Ok((0..takes.len()).map(|index| by_archive.remove(&index).unwrap_or_default()).collect())
        }
    }
}

/// Bytes of these that an earlier run already downloaded, as far as known without reading them.
pub fn kept_bytes(takes: &[MemberFetch<'_>], into: &Path, parts: &ResumeState) -> u64 {
    let of_span = |take: &MemberFetch<'_>, span: &Span| {
        let key = take.key();
        let is_there = |(entry, path): &(Entry, PathBuf)| parts.lists(&key, &entry.name, path, into);
        if span.members.iter().all(is_there) {
            return span.end - span.start;
        }
        take.archive.identity().map_or(0, |identity| {
            parts.kept_bytes(&take.archive.shown(), &identity, take.sha256, (span.start, span.end))
        })
    };
    takes
        .iter()
        .flat_map(|take| take.selection.spans.iter().map(move |span| (take, span)))
        .map(|(take, span)| of_span(take, span))
        .sum()
}

impl MemberFetch<'_> {
    /// The key of the archive in the list of complete members.
    fn key(&self) -> String {
        match (self.sha256, self.archive.identity()) {
            (Some(sha256), _) => sha256.to_owned(),
            (None, Some(identity)) => {
                let validator = identity.validator.unwrap_or_default();
                format!("{} {} {validator}", self.archive.shown(), identity.length)
            }
            (None, None) => self.archive.shown(),
        }
    }
}

impl Archive {
    /// Downloads a selection of this archive only, without resume state.
    ///
    /// # Errors
    /// As [`fetch_members`].
    pub fn fetch_members(
        &self,
        selection: &Selection,
        into: &Path,
        meter: &Meter<'_>,
    ) -> Result<Vec<UnpackedMember>, FetchError> {
        let one = MemberFetch { archive: self, selection, sha256: None };
        Ok(fetch_members(&[one], into, None, meter)?.pop().unwrap_or_default())
    }
}

impl<'m, 'p> Job<'_, 'm, 'p> {
    fn span(
        &self,
        span: &Span,
        into: &Path,
        parts: Option<&ResumeState>,
        meter: &'m Meter<'p>,
    ) -> Result<Vec<UnpackedMember>, FetchError> {
        let file = self
            .meter
            .get_or_init(|| meter.file(&self.take.archive.name(), Some(self.take.selection.transfer())));
        let unpacked = match parts.and_then(|parts| self.take_up(span, into, parts)) {
            Some(unpacked) => {
                file.add(span.end - span.start);
                unpacked
            }
            None => self.fetch(span, into, parts, file)?,
        };
        if self.spans_left.fetch_sub(1, Ordering::Relaxed) == 1 {
            file.finish();
        }
        Ok(unpacked)
    }

    /// All members of the span from an earlier run, if they are complete.
    fn take_up(&self, span: &Span, into: &Path, parts: &ResumeState) -> Option<Vec<UnpackedMember>> {
        let key = self.take.key();
        span.members.iter().map(|(entry, path)| parts.take_up(&key, &entry.name, path, into)).collect()
    }

    fn fetch(
        &self,
        span: &Span,
        into: &Path,
        parts: Option<&ResumeState>,
        file: &FileMeter<'m, 'p>,
    ) -> Result<Vec<UnpackedMember>, FetchError> {
        let archive = self.take.archive;
        let partial = match (parts, archive.identity()) {
            (Some(parts), Some(identity)) => {
                parts.partial_file(&archive.shown(), &identity, self.take.sha256, (span.start, span.end))?
            }
            _ => None,
        };
        let (inner, path): (Box<dyn Read + '_>, _) = match partial {
            Some((partial, path)) => {
                let from = span.start + partial.kept();
                let network = archive.range(from, span.end, file.progress())?;
                (Box::new(partial.then(network)), Some(path))
            }
            None => (archive.range(span.start, span.end, file.progress())?, None),
        };
        let unpacked = self.unpack(span, into, CountingReader { inner, tally: file })?;
        if let Some(parts) = parts {
            parts.list(&self.take.key(), &unpacked)?;
        }
        if let Some(path) = path {
            PartialFile::remove(&path);
        }
        Ok(unpacked)
    }

    fn unpack(&self, span: &Span, into: &Path, inner: impl Read) -> Result<Vec<UnpackedMember>, FetchError> {
        let archive = self.take.archive;
        let mut reader = BufReader::with_capacity(BUFFER, inner);
        let broken = |error| FetchError::from_io(error, &archive.shown());
        let mut end = span.start;
        let mut unpacked = Vec::with_capacity(span.members.len());
        for (entry, path) in &span.members {
            // Positions follow from the sizes of what was read.
            let gap = entry.offset - end;
            io::copy(&mut (&mut reader).take(gap), &mut io::sink()).map_err(broken)?;
            let mut counted = CountingBufReader { inner: &mut reader, count: 0 };
            if central_directory::read_u32(&mut counted).map_err(broken)? != LOCAL {
                return Err(
                    archive.unusable(format!("{} is not at the offset in the central directory", entry.name))
                );
            }
            let header = LocalHeader::read(&mut counted).map_err(broken)?;
            if header.name != entry.name || header.method != entry.method {
                return Err(
                    archive.unusable(format!("{} is named {} in its local header", entry.name, header.name))
                );
            }
            let mut data = (&mut counted).take(entry.compressed);
            let sums = unpack::to_file(&mut data, entry.method, Some(entry.size), &into.join(path))
                .map_err(|error| error.into_error(&archive.shown(), &entry.name))?;
            let rest = data.limit();
            if rest > 0 {
                return Err(archive.unusable(format!("{} ends {rest} bytes early", entry.name)));
            }
            end = entry.offset + counted.count;
            archive.compare(&entry.name, (entry.crc, entry.compressed, entry.size), &sums)?;
            unpacked.push(UnpackedMember {
                name: entry.name.clone(),
                path: path.clone(),
                size: sums.size,
                sha256: sums.sha256,
            });
        }
        Ok(unpacked)
    }
}

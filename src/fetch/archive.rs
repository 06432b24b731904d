//! A zip archive on a server or on the disk, and the selection of its members. If the server supports
//! ranges, only the selected members are downloaded: neighbors in one request, large ones over several
//! connections. Otherwise the archive is streamed once and unpacked on the fly, without being stored.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use super::body::{Body, fetch_tail};
use super::central_directory::{self, Entry, FIRST_TAIL, TAIL, Tail};
use super::client::Client;
use super::error::FetchError;
use super::member_pattern::MemberPattern;
use super::meter::{CountingReader, Meter};
use super::parallel::{self, Parallel};
use super::progress::Progress;
use super::remote_file::{Identity, RemoteFile};
use super::unpack::Sums;

/// Members with at most this many bytes between them are downloaded in one request: the bytes between
/// them cost less than a round trip.
const GAP: u64 = 32 << 10;

/// Bytes read from a connection at a time.
pub(super) const BUFFER: usize = 128 << 10;

/// The size limit of a central directory, which is enough for about ten million members.
const LONGEST_DIRECTORY: u64 = 1 << 30;

/// An archive to read from.
#[derive(Debug, Clone)]
pub struct Archive {
    pub(super) source: Source,
}

#[derive(Debug, Clone)]
pub(super) enum Source {
    Http(Box<RemoteFile>),
    File(PathBuf),
}

/// A member that was unpacked. Its length and CRC-32 match the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpackedMember {
    /// Its name in the archive.
    pub name: String,
    /// Its path relative to the destination.
    pub path: PathBuf,
    /// Bytes.
    pub size: u64,
    /// The SHA-256 of what was written.
    pub sha256: [u8; 32],
}

/// The members that were selected from an archive, before any of them is downloaded.
#[derive(Debug)]
pub struct Selection {
    pub(super) spans: Vec<Span>,
}

/// Members that are close together, and the bytes that contain them.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) members: Vec<(Entry, PathBuf)>,
}

impl Selection {
    /// Bytes to download.
    pub fn transfer(&self) -> u64 {
        self.spans.iter().map(|span| span.end - span.start).sum()
    }

    /// The same selection without the members of a folder.
    #[must_use]
    pub(super) fn without(mut self, folder: &str) -> Self {
        for span in &mut self.spans {
            span.members.retain(|(entry, _)| !entry.name.starts_with(folder));
        }
        self
    }

    /// The lengths of the ranges to download.
    pub fn ranges(&self) -> impl Iterator<Item = u64> {
        self.spans.iter().map(|span| span.end - span.start)
    }

    /// The number of selected members.
    pub fn members(&self) -> usize {
        self.spans.iter().map(|span| span.members.len()).sum()
    }

    /// Bytes on the disk afterwards.
    pub fn unpacked(&self) -> u64 {
        self.spans.iter().flat_map(|span| &span.members).map(|(entry, _)| entry.size).sum()
    }
}

impl Archive {
    /// An archive at an `http`, `https` or `file` address, or at a path.
    ///
    /// # Errors
    /// When the address is neither.
    pub fn open(client: &Client, address: &str) -> Result<Self, FetchError> {
        let source = if let Some(path) = file_path(address)? {
            Source::File(path)
        } else {
            Source::Http(Box::new(RemoteFile::new(client.clone(), address)?))
        };
        Ok(Self { source })
    }

    /// The address or path, without credentials.
    pub fn shown(&self) -> String {
        match &self.source {
            Source::Http(remote) => remote.shown.to_string(),
            Source::File(path) => path.display().to_string(),
        }
    }

    /// The file's name.
    pub(super) fn name(&self) -> String {
        self.shown().rsplit('/').next().unwrap_or_default().to_owned()
    }

    /// The file's length; `None` if the server does not report it.
    pub(super) fn length(&self, meter: &Meter<'_>) -> Result<Option<u64>, FetchError> {
        match &self.source {
            Source::Http(remote) => Ok(remote.probe(meter.progress)?.map(|identity| identity.length)),
            Source::File(path) => {
                let data = std::fs::metadata(path).map_err(FetchError::disk_source("open", path))?;
                Ok(Some(data.len()))
            }
        }
    }

    /// Whether it is on this machine.
    pub(crate) fn is_here(&self) -> bool {
        matches!(self.source, Source::File(_))
    }

    /// The version of a file on a server, as far as known.
    pub(super) fn identity(&self) -> Option<Identity> {
        match &self.source {
            Source::Http(remote) => remote.identity(),
            Source::File(_) => None,
        }
    }

    /// Reads the central directory and selects members.
    ///
    /// # Errors
    /// [`FetchError::NoRanges`] when only [`Self::stream`] works; [`FetchError::Missing`] when a
    /// pattern matches nothing.
    pub fn select(&self, patterns: &[MemberPattern], meter: &Meter<'_>) -> Result<Selection, FetchError> {
        let (entries, directory_start) = self.directory(meter)?;
        let mut spans: Vec<Span> = Vec::new();
        let mut matched = HashSet::new();
        for (index, entry) in entries.iter().enumerate() {
            let Some((pattern, path)) = find(patterns, &entry.name) else { continue };
            matched.insert(pattern);
            // A member's header, data and descriptor end where the next member begins.
            let end = entries.get(index + 1).map_or(directory_start, |next| next.offset);
            match spans.last_mut() {
                Some(last) if entry.offset - last.end <= GAP => {
                    last.end = end;
                    last.members.push((entry.clone(), path));
                }
                _ => spans.push(Span { start: entry.offset, end, members: vec![(entry.clone(), path)] }),
            }
        }
        self.all_matched(patterns, &matched)?;
        Ok(Selection { spans })
    }

    pub(super) fn range<'a>(
        &self,
        start: u64,
        end: u64,
        progress: &'a dyn Progress,
    ) -> Result<Box<dyn Read + 'a>, FetchError> {
        Ok(match &self.source {
            Source::Http(remote) if end - start >= parallel::WORTH_IT => {
                Box::new(Parallel::range(RemoteFile::clone(remote), start, end, progress))
            }
            Source::Http(remote) => Box::new(Body::range(RemoteFile::clone(remote), start, end, progress)),
            Source::File(path) => {
                let mut file = File::open(path).map_err(FetchError::disk("open", path))?;
                file.seek(SeekFrom::Start(start)).map_err(FetchError::disk("read", path))?;
                Box::new(file.take(end - start))
            }
        })
    }

    /// All members, and the offset of the central directory.
    fn directory(&self, meter: &Meter<'_>) -> Result<(Vec<Entry>, u64), FetchError> {
        for count in [FIRST_TAIL, TAIL] {
            let (length, tail) = self.tail(count, meter.progress)?;
            let start = length - tail.len() as u64;
            let found = central_directory::read_tail(&tail, length).map_err(|why| self.unusable(why))?;
            let found = match found {
                Tail::Earlier(from) if from < start => {
                    let longer = self.bytes(from, length, meter)?;
                    central_directory::read_tail(&longer, length).map_err(|why| self.unusable(why))?
                }
                found => found,
            };
            let Tail::Directory(mut place) = found else { continue };
            if place.shift > 0 {
                let at = place.offset + place.shift;
                if central_directory::is_directory(&self.bytes(at, (at + 4).min(length), meter)?) {
                    place.offset = at;
                } else {
                    place.shift = 0;
                }
            }
            if place.length > LONGEST_DIRECTORY {
                return Err(self.unusable(format!("its directory has {} bytes", place.length)));
            }
            let mut bytes = Vec::new();
            // The part of the directory that is in the tail is not downloaded twice.
            if place.offset < start {
                bytes = self.bytes(place.offset, start.min(place.offset + place.length), meter)?;
            }
            let from_tail = place.offset.max(start);
            let to_tail = place.offset + place.length;
            if to_tail > from_tail {
                bytes.extend(&tail[(from_tail - start) as usize..(to_tail - start) as usize]);
            }
            let entries = central_directory::read_directory(&bytes, place.offset, place.shift)
                .map_err(|why| self.unusable(why))?;
            return Ok((entries, place.offset));
        }
        let start = self.bytes(0, 64, meter).unwrap_or_default();
        Err(self.unusable(if start.starts_with(b"PK\x03\x04") {
            "its end is missing; the file is incomplete".into()
        } else {
            not_a_zip(&start)
        }))
    }

    fn tail(&self, count: u64, progress: &dyn Progress) -> Result<(u64, Vec<u8>), FetchError> {
        let path = match &self.source {
            Source::Http(remote) => return fetch_tail(remote, count, progress),
            Source::File(path) => path,
        };
        let read = || {
            let mut file = File::open(path)?;
            let length = file.seek(SeekFrom::End(0))?;
            file.seek(SeekFrom::Start(length.saturating_sub(count)))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok((length, bytes))
        };
        read().map_err(FetchError::disk("read", path))
    }

    fn bytes(&self, start: u64, end: u64, meter: &Meter<'_>) -> Result<Vec<u8>, FetchError> {
        let mut bytes = Vec::new();
        meter.expect(end - start);
        CountingReader { inner: self.range(start, end, meter.progress)?, tally: meter }
            .read_to_end(&mut bytes)
            .map_err(|error| FetchError::from_io(error, &self.shown()))?;
        Ok(bytes)
    }

    pub(super) fn compare(
        &self,
        member: &str,
        announced: (u32, u64, u64),
        sums: &Sums,
    ) -> Result<(), FetchError> {
        let wrong = |what, expected: String, actual: String| {
            Err(FetchError::Wrong {
                archive: self.shown(),
                member: member.to_owned(),
                what,
                expected,
                actual,
            })
        };
        if sums.size != announced.2 {
            return wrong("length", announced.2.to_string(), sums.size.to_string());
        }
        if sums.crc != announced.0 {
            return wrong("CRC-32", format!("{:08x}", announced.0), format!("{:08x}", sums.crc));
        }
        Ok(())
    }

    pub(super) fn all_matched(
        &self,
        patterns: &[MemberPattern],
        matched: &HashSet<usize>,
    ) -> Result<(), FetchError> {
        match patterns
            .iter()
            .enumerate()
            .find(|(index, pattern)| !pattern.optional && !matched.contains(index))
        {
            None => Ok(()),
            Some((_, pattern)) => Err(FetchError::Missing { archive: self.shown(), member: pattern.shown() }),
        }
    }

    pub(super) fn unusable(&self, why: String) -> FetchError {
        FetchError::Archive { archive: self.shown(), why }
    }
}

/// The first pattern that matches this member.
pub(super) fn find(patterns: &[MemberPattern], name: &str) -> Option<(usize, PathBuf)> {
    patterns.iter().enumerate().find_map(|(index, pattern)| Some((index, pattern.place(name)?)))
}

/// Unsupported archives, by their first bytes.
const OTHERS: [(&[u8], &str); 5] = [
    (b"BZh", "bz2"),
    (b"\xfd7zXZ\0", "xz"),
    (b"\x28\xb5\x2f\xfd", "zst"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!\x1a\x07", "rar"),
];

pub(super) fn not_a_zip(start: &[u8]) -> String {
    let text = String::from_utf8_lossy(&start[..start.len().min(40)]);
    let text = text.trim();
    if let Some((_, kind)) = OTHERS.iter().find(|(magic, _)| start.starts_with(magic)) {
        return format!("it is {kind}; bz2, xz, zst, 7z and rar are not supported; use zip, tar or tar.gz");
    }
    if start.is_empty() {
        "it is empty".into()
    } else if text.contains(['\u{fffd}', '\0']) {
        "yolo does not support its format".into()
    } else if text.starts_with('<') {
        format!(
            "it is a web page or XML (it begins with {text:?}); a proxy or login page may have replaced it"
        )
    } else {
        format!("it begins with {text:?}")
    }
}

/// The path of a `file:` address or of a plain path; `None` for other addresses.
pub(super) fn file_path(address: &str) -> Result<Option<PathBuf>, FetchError> {
    if !address.starts_with("file:") {
        return Ok((!address.contains("://")).then(|| address.into()));
    }
    let path = reqwest::Url::parse(address).ok().and_then(|url| url.to_file_path().ok());
    path.map(Some).ok_or_else(|| FetchError::Address {
        url: address.to_owned(),
        why: "it does not name a local file".into(),
    })
}

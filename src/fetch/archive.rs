//! A zip archive on a server or on the disk, of which some members are taken.
//! Where the server knows ranges, only those members travel: neighbours in one request, a large one
//! over several connections. Where it does not, the archive is streamed once and unpacked as it
//! comes, without being stored.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;

use sha2::{Digest, Sha256};

use super::directory::{self, Entry, FIRST_TAIL, LOCAL, LocalHeader, Method, TAIL, Tail};
use super::http::{Body, Remote};
use super::meter::{Announcing, Counting, CountingBuf, Hashing, Meter};
use super::parallel::{self, Parallel};
use super::unpack::{self, Sums, Trouble};
use super::{Client, FetchError, Progress};

/// Members with less than this between them are fetched in one request: the bytes between cost
/// less than a round trip.
const GAP: u64 = 32 << 10;

/// Requests for different spans of one archive at once.
const SPANS: usize = 3;

/// Bytes read from a connection at a time.
const BUFFER: usize = 128 << 10;

/// An archive that can be read from.
#[derive(Debug, Clone)]
pub struct Archive {
    source: Source,
}

#[derive(Debug, Clone)]
enum Source {
    Http(Remote),
    File(PathBuf),
}

/// A member, or all members of a folder, and where they go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick {
    from: String,
    to: PathBuf,
}

impl Pick {
    /// One member to one path below the destination.
    pub fn file(from: impl Into<String>, to: impl Into<PathBuf>) -> Self {
        Self { from: from.into(), to: to.into() }
    }

    /// All members below a folder of the archive, to the same places below `to`.
    pub fn tree(from: &str, to: impl Into<PathBuf>) -> Self {
        Self { from: format!("{}/", from.trim_end_matches('/')), to: to.into() }
    }

    fn place(&self, name: &str) -> Option<PathBuf> {
        if name.ends_with('/') {
            return None;
        }
        if self.from.ends_with('/') {
            return name.strip_prefix(&self.from).map(|rest| self.to.join(rest));
        }
        (name == self.from).then(|| self.to.clone())
    }
}

/// A member that lies on the disk now; its length and CRC-32 are those of the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// Its name in the archive.
    pub name: String,
    /// Its path below the destination.
    pub path: PathBuf,
    /// Bytes.
    pub size: u64,
    /// The SHA-256 of what was written.
    pub sha256: [u8; 32],
}

/// The members that were picked out of a remote directory, before any of them travels.
#[derive(Debug)]
pub struct Selection {
    spans: Vec<Span>,
}

/// Members that lie close together, and the bytes that hold them.
#[derive(Debug)]
struct Span {
    start: u64,
    end: u64,
    members: Vec<(Entry, PathBuf)>,
}

impl Selection {
    /// Bytes that will travel.
    pub fn transfer(&self) -> u64 {
        self.spans.iter().map(|span| span.end - span.start).sum()
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
    /// When the address is none of these.
    pub fn open(client: &Client, address: &str) -> Result<Self, FetchError> {
        let source = if let Some(path) = file_path(address)? {
            Source::File(path)
        } else {
            Source::Http(Remote::new(client.clone(), address)?)
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

    /// Reads the directory of the archive and picks members.
    ///
    /// # Errors
    /// [`FetchError::NoRanges`] where only [`Self::stream`] works; [`FetchError::Missing`] when a
    /// pick matches nothing.
    pub fn select(&self, picks: &[Pick], meter: &Meter<'_>) -> Result<Selection, FetchError> {
        let (entries, directory_start) = self.directory(meter)?;
        let mut spans: Vec<Span> = Vec::new();
        let mut matched = HashSet::new();
        for (index, entry) in entries.iter().enumerate() {
            let Some((pick, path)) = find(picks, &entry.name) else { continue };
            matched.insert(pick);
            // Header, data and descriptor of a member end where the next member begins.
            let end = entries.get(index + 1).map_or(directory_start, |next| next.offset);
            match spans.last_mut() {
                Some(last) if entry.offset - last.end <= GAP => {
                    last.end = end;
                    last.members.push((entry.clone(), path));
                }
                _ => spans.push(Span { start: entry.offset, end, members: vec![(entry.clone(), path)] }),
            }
        }
        self.all_matched(picks, &matched)?;
        Ok(Selection { spans })
    }

    /// Fetches and unpacks what was selected, below `into`.
    ///
    /// # Errors
    /// When the transfer fails for good, the bytes are wrong or the disk refuses.
    pub fn take(
        &self,
        selection: &Selection,
        into: &Path,
        meter: &Meter<'_>,
    ) -> Result<Vec<Unpacked>, FetchError> {
        let mut queue: Vec<&Span> = selection.spans.iter().collect();
        // Popped from the end, so the longest begins first.
        queue.sort_by_key(|span| span.end - span.start);
        let queue = Mutex::new(queue);
        let results = Mutex::new((Vec::new(), None));
        std::thread::scope(|scope| {
            for _ in 0..SPANS.min(selection.spans.len()) {
                scope.spawn(|| {
                    loop {
                        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
                        let Some(span) = next else { return };
                        let result = self.take_span(span, into, meter);
                        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                        match result {
                            Ok(unpacked) => results.0.extend(unpacked),
                            Err(error) => {
                                // The first failure is the one to tell; the others stop soon.
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
            (unpacked, None) => Ok(unpacked),
        }
    }

    /// Reads the archive once from its beginning and unpacks the picks as they come.
    /// Also gives the SHA-256 of the whole archive.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn stream(
        &self,
        picks: &[Pick],
        into: &Path,
        meter: &Meter<'_>,
    ) -> Result<(Vec<Unpacked>, [u8; 32]), FetchError> {
        let reader: Box<dyn Read + '_> = match &self.source {
            Source::Http(remote) => Box::new(Announcing {
                body: Body::whole(remote.clone(), meter.progress),
                meter,
                announced: false,
            }),
            Source::File(path) => {
                let file = File::open(path).map_err(FetchError::disk("open", path))?;
                meter.expect(file.metadata().map_or(0, |data| data.len()));
                Box::new(file)
            }
        };
        let mut reader = BufReader::with_capacity(
            BUFFER,
            Hashing { inner: Counting { inner: reader, meter }, sha: Sha256::new() },
        );
        let unpacked = self.stream_members(&mut reader, picks, into)?;
        io::copy(&mut reader, &mut io::sink()).map_err(|error| FetchError::from_io(error, &self.shown()))?;
        Ok((unpacked, reader.into_inner().sha.finalize().into()))
    }

    fn stream_members(
        &self,
        reader: &mut impl BufRead,
        picks: &[Pick],
        into: &Path,
    ) -> Result<Vec<Unpacked>, FetchError> {
        let broken = |error| FetchError::from_io(error, &self.shown());
        let start = reader.fill_buf().map_err(broken)?;
        if !start.starts_with(b"PK\x03\x04") {
            return Err(self.unusable(not_a_zip(start)));
        }
        let (mut unpacked, mut matched, mut seen) = (Vec::new(), HashSet::new(), HashSet::new());
        while directory::read_u32(reader).map_err(broken)? == LOCAL {
            let header = LocalHeader::read(reader).map_err(broken)?;
            if !seen.insert(header.name.clone()) {
                return Err(self.unusable(format!("{} is in it twice", header.name)));
            }
            if header.sums.is_none() && header.method == Method::Stored && !header.name.ends_with('/') {
                return Err(self.unusable(format!(
                    "{} can be read by ranges only, since its length is not told before it",
                    header.name
                )));
            }
            let found = find(picks, &header.name);
            if found.is_none()
                && let Some((_, compressed, _)) = header.sums
            {
                let skipped = io::copy(&mut reader.take(compressed), &mut io::sink()).map_err(broken)?;
                if skipped < compressed {
                    return Err(self.unusable(format!("it ends inside {}", header.name)));
                }
                continue;
            }
            let result = stream_member(reader, &header, found.as_ref().map(|(_, path)| into.join(path)));
            let (sums, announced) = result.map_err(|error| error.into_error(&self.shown(), &header.name))?;
            self.compare(&header.name, announced, &sums)?;
            if let Some((pick, path)) = found {
                matched.insert(pick);
                unpacked.push(Unpacked { name: header.name, path, size: sums.size, sha256: sums.sha256 });
            }
        }
        self.all_matched(picks, &matched)?;
        Ok(unpacked)
    }

    fn take_span(&self, span: &Span, into: &Path, meter: &Meter<'_>) -> Result<Vec<Unpacked>, FetchError> {
        let inner = self.range(span.start, span.end, meter.progress)?;
        let mut reader = BufReader::with_capacity(BUFFER, Counting { inner, meter });
        let broken = |error| FetchError::from_io(error, &self.shown());
        let mut end = span.start;
        let mut unpacked = Vec::with_capacity(span.members.len());
        for (entry, path) in &span.members {
            // Positions are counted from the sizes of what was read.
            let gap = entry.offset - end;
            io::copy(&mut (&mut reader).take(gap), &mut io::sink()).map_err(broken)?;
            let mut counted = CountingBuf { inner: &mut reader, count: 0 };
            if directory::read_u32(&mut counted).map_err(broken)? != LOCAL {
                return Err(self.unusable(format!("{} is not where the directory says", entry.name)));
            }
            let header = LocalHeader::read(&mut counted).map_err(broken)?;
            if header.name != entry.name || header.method != entry.method {
                return Err(self.unusable(format!("{} is named {} at its place", entry.name, header.name)));
            }
            let mut data = (&mut counted).take(entry.compressed);
            let sums = unpack::to_file(&mut data, entry.method, Some(entry.size), &into.join(path))
                .map_err(|error| error.into_error(&self.shown(), &entry.name))?;
            let rest = data.limit();
            if rest > 0 {
                return Err(self.unusable(format!("{} ends {rest} bytes too early", entry.name)));
            }
            end = entry.offset + counted.count;
            self.compare(&entry.name, (entry.crc, entry.compressed, entry.size), &sums)?;
            unpacked.push(Unpacked {
                name: entry.name.clone(),
                path: path.clone(),
                size: sums.size,
                sha256: sums.sha256,
            });
        }
        Ok(unpacked)
    }

    fn range<'a>(
        &self,
        start: u64,
        end: u64,
        progress: &'a dyn Progress,
    ) -> Result<Box<dyn Read + 'a>, FetchError> {
        Ok(match &self.source {
            Source::Http(remote) if end - start >= parallel::WORTH_IT => {
                Box::new(Parallel::range(remote.clone(), start, end, progress))
            }
            Source::Http(remote) => Box::new(Body::range(remote.clone(), start, end, progress)),
            Source::File(path) => {
                let mut file = File::open(path).map_err(FetchError::disk("open", path))?;
                file.seek(SeekFrom::Start(start)).map_err(FetchError::disk("read", path))?;
                Box::new(file.take(end - start))
            }
        })
    }

    /// All members, and where the directory begins.
    fn directory(&self, meter: &Meter<'_>) -> Result<(Vec<Entry>, u64), FetchError> {
        for count in [FIRST_TAIL, TAIL] {
            let (length, tail) = self.tail(count, meter.progress)?;
            let start = length - tail.len() as u64;
            let found = directory::read_tail(&tail, length).map_err(|why| self.unusable(why))?;
            let found = match found {
                Tail::Earlier(from) if from < start => {
                    let longer = self.bytes(from, length, meter)?;
                    directory::read_tail(&longer, length).map_err(|why| self.unusable(why))?
                }
                found => found,
            };
            let Tail::Directory(place) = found else { continue };
            let mut bytes = Vec::new();
            // What the tail holds of the directory does not travel twice.
            if place.offset < start {
                bytes = self.bytes(place.offset, start.min(place.offset + place.length), meter)?;
            }
            let from_tail = place.offset.max(start);
            let to_tail = place.offset + place.length;
            if to_tail > from_tail {
                bytes.extend(&tail[(from_tail - start) as usize..(to_tail - start) as usize]);
            }
            let entries =
                directory::read_directory(&bytes, place.offset).map_err(|why| self.unusable(why))?;
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
            Source::Http(remote) => return remote.tail(count, progress),
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
        Counting { inner: self.range(start, end, meter.progress)?, meter }
            .read_to_end(&mut bytes)
            .map_err(|error| FetchError::from_io(error, &self.shown()))?;
        Ok(bytes)
    }

    fn compare(&self, member: &str, announced: (u32, u64, u64), sums: &Sums) -> Result<(), FetchError> {
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

    fn all_matched(&self, picks: &[Pick], matched: &HashSet<usize>) -> Result<(), FetchError> {
        match picks.iter().enumerate().find(|(index, _)| !matched.contains(index)) {
            None => Ok(()),
            Some((_, pick)) => Err(FetchError::Missing { archive: self.shown(), member: pick.from.clone() }),
        }
    }

    fn unusable(&self, why: String) -> FetchError {
        FetchError::Archive { archive: self.shown(), why }
    }
}

/// The first pick that wants this member.
fn find(picks: &[Pick], name: &str) -> Option<(usize, PathBuf)> {
    picks.iter().enumerate().find_map(|(index, pick)| Some((index, pick.place(name)?)))
}

fn stream_member(
    reader: &mut impl BufRead,
    header: &LocalHeader,
    path: Option<PathBuf>,
) -> Result<(Sums, (u32, u64, u64)), Trouble> {
    let (compressed, size) =
        header.sums.map_or((u64::MAX, None), |(_, compressed, size)| (compressed, Some(size)));
    // A folder that hides its length has none.
    let compressed =
        if header.name.ends_with('/') && header.method == Method::Stored { 0 } else { compressed };
    let mut data = (&mut *reader).take(compressed);
    let sums = match path {
        Some(path) => unpack::to_file(&mut data, header.method, size, &path)?,
        None => unpack::skip(&mut data, header.method, size)?,
    };
    if header.sums.is_some() && data.limit() > 0 {
        let why = format!("it ends {} bytes too early", data.limit());
        return Err(Trouble::Data(io::Error::other(why)));
    }
    let announced = match header.sums {
        Some(sums) => sums,
        None => header.read_descriptor(reader).map_err(Trouble::Data)?,
    };
    Ok((sums, announced))
}

fn not_a_zip(start: &[u8]) -> String {
    let text = String::from_utf8_lossy(&start[..start.len().min(40)]);
    let text = text.trim();
    if start.is_empty() {
        "it is empty".into()
    } else if text.starts_with('<') {
        format!(
            "it is a web page or XML (it begins with {text:?}); a proxy or a login page may stand in between"
        )
    } else {
        format!("it begins with {text:?}")
    }
}

/// The path of a `file:` address or of a plain path; `None` for other addresses.
fn file_path(address: &str) -> Result<Option<PathBuf>, FetchError> {
    if !address.starts_with("file:") {
        return Ok((!address.contains("://")).then(|| address.into()));
    }
    let path = reqwest::Url::parse(address).ok().and_then(|url| url.to_file_path().ok());
    path.map(Some).ok_or_else(|| FetchError::Address {
        url: address.to_owned(),
        why: "it names no file of this machine".into(),
    })
}

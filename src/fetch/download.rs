//! Downloads a whole file from the first source that works. Large files use several connections and are
//! hashed while they arrive. A later run resumes if the server guarantees the same bytes, or if their
//! hash is known.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use yolo_base::format;

use super::archive::{BUFFER, file_path};
use super::body::Body;
use super::client::{Client, Policy};
use super::disk::MARGIN;
use super::disk::free_bytes;
use super::error::FetchError;
use super::meter::{AnnouncingReader, CountingReader, FileMeter, Meter};
use super::parallel::{self, Parallel};
use super::partial_file::{PartialFile, PartialLabel};
use super::progress::{Progress, ProgressEvent};
use super::redacted::Redacted;
use super::remote_file::RemoteFile;
use super::sha256::Sha256;

/// A file to download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRequest {
    /// Its name, for messages.
    pub name: String,
    /// Addresses or paths, the best first. They may contain credentials.
    pub sources: Vec<String>,
    /// Its length, if known.
    pub length: Option<u64>,
    /// Its SHA-256 in hexadecimal, if known.
    pub sha256: Option<String>,
}

/// A downloaded file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Downloaded {
    /// Where it is: the requested path, or its own path if the source is a local folder.
    pub path: PathBuf,
    /// Bytes.
    pub size: u64,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
    /// Its source, without credentials.
    pub source: String,
}

/// Downloads the file to `part`.
///
/// # Errors
/// When the disk fails, or when all sources fail, with the reason of each.
pub fn download(
    client: &Client,
    wanted: &FileRequest,
    part: &Path,
    meter: &Meter<'_>,
) -> Result<Downloaded, FetchError> {
    let mut refusals = Vec::new();
    for (index, source) in wanted.sources.iter().enumerate() {
        match from_source(client, wanted, source, part, meter) {
            Ok(downloaded) => return Ok(downloaded),
            Err(error) if error.is_disk() => return Err(error),
            Err(error) if wanted.sources.len() == 1 => return Err(error),
            Err(error) => {
                if index + 1 < wanted.sources.len() {
                    meter
                        .progress
                        .event(ProgressEvent::Note { text: &format!("{error}; trying the next source") });
                }
                refusals.push(error.into());
            }
        }
    }
    Err(FetchError::NoSource { name: wanted.name.clone(), refusals })
}

/// The length of a file on a server, without retries; `None` if the server does not report it.
pub fn length_of(client: &Client, source: &str, progress: &dyn Progress) -> Option<u64> {
    let once = Client { policy: Policy { attempts: 1, ..client.policy.clone() }, ..client.clone() };
    RemoteFile::new(once, source).ok()?.probe(progress).ok()?.map(|identity| identity.length)
}

fn from_source(
    client: &Client,
    wanted: &FileRequest,
    source: &str,
    part: &Path,
    meter: &Meter<'_>,
) -> Result<Downloaded, FetchError> {
    let file_meter = meter.file(&wanted.name, None);
    if let Some(path) = file_path(source)? {
        return from_disk(wanted, path, &file_meter);
    }
    let attempt = || {
        let remote = RemoteFile::new(client.clone(), source)?;
        let transfer = Transfer { wanted, part, file: &file_meter, remote };
        transfer.run()
    };
    match attempt() {
        // The wrong bytes may come from an earlier run, or the file has just changed: start again once.
        Err((error, true)) => {
            meter.progress.event(ProgressEvent::Note { text: &format!("{error}; downloading it again") });
            PartialFile::remove(part);
            file_meter.restart();
            attempt().map_err(|(error, _)| error)
        }
        done => done.map_err(|(error, _)| error),
    }
}

/// A local file is read in place.
fn from_disk(
    wanted: &FileRequest,
    path: PathBuf,
    meter: &FileMeter<'_, '_>,
) -> Result<Downloaded, FetchError> {
    let mut file = File::open(&path).map_err(FetchError::disk_source("open", &path))?;
    let length = file.metadata().map_err(FetchError::disk_source("read", &path))?.len();
    meter.expect(length);
    check_length(wanted, length, &path.display().to_string())?;
    let sha256 = copy(&mut file, meter, &mut io::sink(), &path.display().to_string())?.1;
    check_hash(wanted, &sha256, &path.display().to_string())?;
    let source = path.display().to_string();
    Ok(Downloaded { path, size: length, sha256, source })
}

/// A download from one server.
struct Transfer<'a, 'm, 'p> {
    wanted: &'a FileRequest,
    part: &'a Path,
    file: &'a FileMeter<'m, 'p>,
    remote: RemoteFile,
}

/// An error, and whether downloading everything again from the same source may help.
type Failed = (FetchError, bool);

impl From<FetchError> for Failed {
    fn from(error: FetchError) -> Self {
        (error, false)
    }
}

impl Transfer<'_, '_, '_> {
    fn run(&self) -> Result<Downloaded, Failed> {
        let shown = self.remote.shown.to_string();
        let identity = self.remote.probe(self.file.progress())?;
        let (size, sha256, resumed) = match identity {
            Some(identity) => {
                check_length(self.wanted, identity.length, &shown)?;
                let length = identity.length;
                let sha256 = self.wanted.sha256.as_deref();
                let label = PartialLabel::new(&shown, &identity, sha256, (0, length));
                let partial = PartialFile::open(self.part, &label)?;
                let kept = partial.kept();
                self.check_room(length - kept)?;
                self.file.expect(length);
                let mut reader = partial.then(self.rest(kept, length));
                let (size, sha256) = copy(&mut reader, self.file, &mut io::sink(), &shown)
                    .map_err(|error| again_if_changed(error, kept))?;
                (size, sha256, kept > 0)
            }
            None => {
                let (size, sha256) = self.whole(&shown)?;
                (size, sha256, false)
            }
        };
        check_length(self.wanted, size, &shown)
            .and_then(|()| check_hash(self.wanted, &sha256, &shown))
            .map_err(|error| {
                // Wrong bytes are useless to a later run.
                PartialFile::remove(self.part);
                (error, resumed)
            })?;
        Ok(Downloaded { path: self.part.to_owned(), size, sha256, source: shown })
    }

    /// The bytes after those that were kept.
    fn rest(&self, from: u64, end: u64) -> Box<dyn Read + '_> {
        let (remote, progress) = (self.remote.clone(), self.file.progress());
        if end - from >= parallel::WORTH_IT {
            Box::new(Parallel::range(remote, from, end, progress))
        } else {
            Box::new(Body::range(remote, from, end, progress))
        }
    }

    /// Downloads all of it without ranges, which cannot be resumed.
    fn whole(&self, shown: &str) -> Result<(u64, String), FetchError> {
        PartialFile::remove(self.part);
        if let Some(parent) = self.part.parent() {
            fs::create_dir_all(parent).map_err(FetchError::disk("create", parent))?;
        }
        self.check_room(self.wanted.length.unwrap_or(0))?;
        let mut file = File::create(self.part).map_err(FetchError::disk("create", self.part))?;
        let body = Body::whole(self.remote.clone(), self.file.progress());
        let mut reader = AnnouncingReader { body, file: self.file, announced: false };
        let mut sink = Sink { file: &mut file, path: self.part };
        copy(&mut reader, self.file, &mut sink, shown)
    }

    fn check_room(&self, need: u64) -> Result<(), FetchError> {
        let folder = self.part.parent().unwrap_or(self.part);
        let (free, need) = (free_bytes(folder)?, need + MARGIN);
        if free < need {
            let (free, need) = (format::bytes(free), format::bytes(need));
            return Err(FetchError::Space { path: folder.to_owned(), free, need });
        }
        Ok(())
    }
}

/// Writes to a file, with errors that name it.
struct Sink<'a> {
    file: &'a mut File,
    path: &'a Path,
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(FetchError::disk("write", self.path)).map_err(io::Error::from)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn again_if_changed(error: FetchError, kept: u64) -> Failed {
    let again = matches!(error, FetchError::Changed { .. }) || (kept > 0 && error.is_wrong_bytes());
    (error, again)
}

/// Copies to the end and hashes. Detects at the first bytes if the server sends a web page instead.
fn copy(
    reader: &mut dyn Read,
    meter: &FileMeter<'_, '_>,
    sink: &mut dyn Write,
    shown: &str,
) -> Result<(u64, String), FetchError> {
    let broken = |error| FetchError::from_io(error, shown);
    let mut reader = CountingReader { inner: reader, tally: meter };
    let (mut size, mut sha, mut buffer) = (0, Sha256::new(), vec![0; BUFFER]);
    loop {
        let count = match reader.read(&mut buffer) {
            Ok(0) => return Ok((size, hex::encode(sha.finish()))),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(broken(error)),
        };
        if size == 0 && is_page(&buffer[..count]) {
            return Err(FetchError::Refused {
                url: shown.to_owned(),
                why: "it is a web page; a proxy or login page may have replaced the file".into(),
            });
        }
        sha.update(&buffer[..count]);
        sink.write_all(&buffer[..count]).map_err(broken)?;
        size += count as u64;
    }
}

fn is_page(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&start[..start.len().min(256)]).to_lowercase();
    let text = text.trim_start_matches('\u{feff}').trim_start();
    text.starts_with("<!doctype html") || text.starts_with("<html")
}

fn check_length(wanted: &FileRequest, actual: u64, shown: &str) -> Result<(), FetchError> {
    match wanted.length {
        Some(expected) if expected != actual => {
            Err(wrong(wanted, shown, "length", expected.to_string(), actual.to_string()))
        }
        _ => Ok(()),
    }
}

fn check_hash(wanted: &FileRequest, actual: &str, shown: &str) -> Result<(), FetchError> {
    match &wanted.sha256 {
        Some(expected) if expected != actual => {
            Err(wrong(wanted, shown, "SHA-256", expected.clone(), actual.to_owned()))
        }
        _ => Ok(()),
    }
}

fn wrong(
    wanted: &FileRequest,
    shown: &str,
    what: &'static str,
    expected: String,
    actual: String,
) -> FetchError {
    let archive = Redacted::new(shown).to_string();
    FetchError::Wrong { archive, member: wanted.name.clone(), what, expected, actual }
}

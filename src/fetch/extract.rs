//! Unpacks a whole local archive (zip, tar or tar.gz, detected by its bytes) into a directory.
//!
//! Invariant: only regular files and directories are created, all of them inside that directory, and
//! never more than fits on the disk or than an honest archive of that size can contain.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use yolo_base::format;

use super::archive::{Archive, BUFFER, not_a_zip};
use super::central_directory::file_and_folder;
use super::client::Client;
use super::disk::MARGIN;
use super::disk::free_bytes;
use super::download::FileRequest;
use super::error::FetchError;
use super::gzip::Members;
use super::member_path::safe_name;
use super::member_pattern::MemberPattern;
use super::meter::{CountingReader, FileMeter, Meter};

/// An archive that grows by more than this factor, and to more than [`LARGE`], is a zip bomb. Deflate can
/// reach 1032, but images hardly compress.
const GROWTH: u64 = 200;

/// Below this size, an archive does no harm.
const LARGE: u64 = 1 << 30;

/// The folder in which macOS archives keep metadata of every file.
const SHADOWS: &str = "__MACOSX/";

/// The contents of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Contents {
    /// The number of files.
    pub files: usize,
    /// Their total bytes.
    pub bytes: u64,
}

/// Unpacks the archive at `path` into `into`. `shown` is its name in messages.
///
/// # Errors
/// When it is not a supported archive, damaged, hostile, or too large for the disk.
pub fn extract(
    client: &Client,
    path: &Path,
    shown: &str,
    into: &Path,
    meter: &Meter<'_>,
) -> Result<Contents, FetchError> {
    let mut file = File::open(path).map_err(FetchError::disk("open", path))?;
    let mut start = [0; 512];
    let mut length = 0;
    while let count @ 1.. = file.read(&mut start[length..]).map_err(FetchError::disk("read", path))? {
        length += count;
    }
    let start = &start[..length];
    let unusable = |why: String| FetchError::Archive { archive: shown.to_owned(), why };
    file.rewind().map_err(FetchError::disk("read", path))?;
    let packed = file.metadata().map_err(FetchError::disk("read", path))?.len();
    fs::create_dir_all(into).map_err(FetchError::disk("create", into))?;
    let limit = Limit::of(packed, into)?;
    let is_gzip = start.starts_with(&[0x1f, 0x8b]);
    let is_tar = start.get(257..262) == Some(b"ustar");
    if !is_gzip && !is_tar {
        let archive = Archive::open(client, &path.display().to_string())?;
        // A self-extracting zip begins with a program.
        let is_zip = start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06");
        if !is_zip && archive.select(&[MemberPattern::all()], meter).is_err() {
            return Err(unusable(not_a_zip(start)));
        }
        return unzip(&archive, shown, into, limit, meter)
            .map_err(|error| blame_name(rename(error, path, shown), shown, into));
    }
    let file_meter = meter.file(&format!("unpacking {shown}"), None);
    file_meter.expect(packed);
    let counted = BufReader::with_capacity(BUFFER, CountingReader { inner: file, tally: &file_meter });
    let kind = if is_gzip { "tar.gz" } else { "tar" };
    let unpacker = Untar { shown, kind, into, limit, file: &file_meter };
    let contents = if is_gzip {
        let mut reader = Members::new(counted);
        // The checksum of the stream follows the end of the archive.
        unpacker.run(&mut reader).and_then(|contents| {
            io::copy(&mut reader, &mut io::sink()).map_err(|error| unpacker.broken(error))?;
            Ok(contents)
        })
    } else {
        unpacker.run(&mut { counted })
    };
    contents.map_err(|error| blame_name(error, shown, into))
}

/// Blames the archive, and not the disk, for a member whose name is impossible for a file.
fn blame_name(error: FetchError, shown: &str, into: &Path) -> FetchError {
    match error {
        FetchError::Disk { path, source, .. }
            if matches!(
                source.kind(),
                io::ErrorKind::InvalidFilename
                    | io::ErrorKind::NotADirectory
                    | io::ErrorKind::IsADirectory
                    | io::ErrorKind::AlreadyExists
            ) =>
        {
            let member = path.strip_prefix(into).unwrap_or(&path).display().to_string();
            let start: String = member.chars().take(120).collect();
            let why = format!("it contains {start:?}, which cannot be a file here ({source})");
            FetchError::Hostile { archive: shown.to_owned(), why }
        }
        other => other,
    }
}

/// How much an archive may unpack to.
#[derive(Debug, Clone, Copy)]
struct Limit {
    /// The free space on the disk, less a margin.
    room: u64,
    /// The most that an honest archive of this size contains.
    honest: u64,
}

impl Limit {
    fn of(packed: u64, into: &Path) -> Result<Self, FetchError> {
        let room = free_bytes(into)?.saturating_sub(MARGIN);
        Ok(Self { room, honest: packed.saturating_mul(GROWTH).max(LARGE) })
    }

    fn check(self, bytes: u64, shown: &str, into: &Path) -> Result<(), FetchError> {
        if bytes > self.honest {
            let why = format!(
                "it unpacks to {} or more, over {GROWTH} times its size, which no real data set does",
                format::bytes(bytes)
            );
            return Err(FetchError::Hostile { archive: shown.to_owned(), why });
        }
        if bytes > self.room {
            let (free, need) = (format::bytes(self.room + MARGIN), format::bytes(bytes + MARGIN));
            return Err(FetchError::Space { path: into.to_owned(), free, need });
        }
        Ok(())
    }
}

/// The size of an archive, as far as it is known before the download.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArchiveSize {
    /// Bytes of the archive.
    pub packed: Option<u64>,
    /// Bytes of its contents.
    pub unpacked: Option<u64>,
}

/// Asks the sources in order for the size of an archive. Also returns the index of the one that
/// answered.
///
/// # Errors
/// When all sources fail, with the reason of each.
pub fn archive_size(
    client: &Client,
    wanted: &FileRequest,
    meter: &Meter<'_>,
) -> Result<(usize, ArchiveSize), FetchError> {
    let mut refusals = Vec::new();
    for (index, source) in wanted.sources.iter().enumerate() {
        match size_at(client, source, meter) {
            Ok(size) => return Ok((index, size)),
            Err(error) => refusals.push(error.into()),
        }
    }
    Err(FetchError::NoSource { name: wanted.name.clone(), refusals })
}

fn size_at(client: &Client, source: &str, meter: &Meter<'_>) -> Result<ArchiveSize, FetchError> {
    let archive = Archive::open(client, source)?;
    let packed = archive.length(meter)?;
    let is_zip = archive.name().to_ascii_lowercase().ends_with(".zip");
    // The central directory of a zip has the sizes. If the file is not a zip, unpacking it will fail.
    let unpacked = match packed.filter(|_| is_zip) {
        Some(_) => archive.select(&[MemberPattern::all()], meter).ok().map(|selection| selection.unpacked()),
        None => None,
    };
    Ok(ArchiveSize { packed, unpacked })
}

fn unzip(
    archive: &Archive,
    shown: &str,
    into: &Path,
    limit: Limit,
    meter: &Meter<'_>,
) -> Result<Contents, FetchError> {
    let selection = archive.select(&[MemberPattern::all()], meter)?.without(SHADOWS);
    limit.check(selection.unpacked(), shown, into)?;
    let unpacked = archive.fetch_members(&selection, into, meter)?;
    Ok(Contents { files: unpacked.len(), bytes: unpacked.iter().map(|file| file.size).sum() })
}

/// Replaces the path of the partial file in an error by the name that the user knows.
fn rename(error: FetchError, path: &Path, shown: &str) -> FetchError {
    let same = |archive: String| if Path::new(&archive) == path { shown.to_owned() } else { archive };
    match error {
        FetchError::Archive { archive, why } => FetchError::Archive { archive: same(archive), why },
        FetchError::Wrong { archive, member, what, expected, actual } => {
            FetchError::Wrong { archive: same(archive), member, what, expected, actual }
        }
        FetchError::Missing { archive, .. } => {
            FetchError::Archive { archive: same(archive), why: "it contains no files".into() }
        }
        other => other,
    }
}

struct Untar<'a> {
    shown: &'a str,
    /// "tar" or "tar.gz".
    kind: &'static str,
    into: &'a Path,
    limit: Limit,
    file: &'a FileMeter<'a, 'a>,
}

impl Untar<'_> {
    fn run(&self, reader: &mut dyn Read) -> Result<Contents, FetchError> {
        let broken = |error| self.broken(error);
        let mut archive = tar::Archive::new(reader);
        let (mut contents, mut seen) = (Contents::default(), HashSet::new());
        for entry in archive.entries().map_err(broken)? {
            let mut entry = entry.map_err(broken)?;
            let raw = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let kind = entry.header().entry_type();
            if kind.is_pax_global_extensions() {
                continue;
            }
            let name = safe_name(&raw).map_err(|why| self.hostile(why))?;
            let both = file_and_folder(&name, |parent| seen.contains(parent)).or_else(|| {
                // The name of a file may already be a folder.
                (!name.ends_with('/') && self.into.join(&name).is_dir()).then_some(name.as_str())
            });
            if let Some(both) = both {
                return Err(self.hostile(format!("it contains {both} both as a file and as a folder")));
            }
            if kind.is_dir() || name.ends_with('/') {
                let folder = self.into.join(&name);
                fs::create_dir_all(&folder).map_err(FetchError::disk("create", folder))?;
                continue;
            }
            if name.starts_with(SHADOWS) {
                continue;
            }
            if !(kind.is_file() || kind.is_contiguous()) {
                return Err(self.hostile(format!("{name} is {}, which yolo does not unpack", in_words(kind))));
            }
            if !seen.insert(name.clone()) {
                return Err(self.hostile(format!("it contains {name} twice")));
            }
            contents.bytes += entry.size();
            contents.files += 1;
            self.limit.check(contents.bytes, self.shown, self.into)?;
            self.write(&name, &mut entry)?;
        }
        if contents.files == 0 {
            return Err(FetchError::Archive {
                archive: self.shown.to_owned(),
                why: "it contains no files".into(),
            });
        }
        Ok(contents)
    }

    fn write(&self, name: &str, entry: &mut dyn Read) -> Result<(), FetchError> {
        let path: PathBuf = self.into.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(FetchError::disk("create", parent))?;
        }
        let mut file = File::create(&path).map_err(FetchError::disk("create", &path))?;
        let mut buffer = vec![0; BUFFER];
        loop {
            let count = match entry.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) => return Err(self.broken(error)),
            };
            io::Write::write_all(&mut file, &buffer[..count]).map_err(FetchError::disk("write", &path))?;
        }
    }

    /// An error of the archive's reader.
    fn broken(&self, error: io::Error) -> FetchError {
        let early = error.kind() == io::ErrorKind::UnexpectedEof;
        match FetchError::from_io(error, self.shown) {
            FetchError::Archive { archive, .. } if early => {
                let why = format!("this {} ends early; the file is incomplete", self.kind);
                FetchError::Archive { archive, why }
            }
            FetchError::Archive { archive, why } => {
                FetchError::Archive { archive, why: format!("this {} is damaged: {why}", self.kind) }
            }
            other => other,
        }
    }

    fn hostile(&self, why: String) -> FetchError {
        // The progress of a rejected archive is no longer shown.
        self.file.finish();
        FetchError::Hostile { archive: self.shown.to_owned(), why }
    }
}

fn in_words(kind: tar::EntryType) -> &'static str {
    if kind.is_symlink() {
        "a symbolic link"
    } else if kind.is_hard_link() {
        "a hard link"
    } else if kind.is_character_special() || kind.is_block_special() {
        "a device"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_gnu_sparse() {
        "a sparse file"
    } else {
        "an entry of an unknown kind"
    }
}

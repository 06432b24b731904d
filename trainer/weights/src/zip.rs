//! The zip layout of PyTorch since version 1.6: `NAME/data.pkl` is the pickle, `NAME/data/KEY` are the
//! storages of its tensors, and `NAME/byteorder` is their byte order. Records are never compressed, so
//! no record can be larger than the file.

use std::io::{Read, Seek};

use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use crate::error::Problem;
use crate::pickle::{self, Storages};
use crate::value::Value;

/// The largest pickle. YOLOv5's are under 1 MB, since tensors are separate.
const MAX_PICKLE: u64 = 64 << 20;

/// Reads the pickle of an archive with its tensors.
pub(crate) fn read(file: impl Read + Seek, length: u64) -> Result<Value, Problem> {
    let mut archive = open(file, length)?;
    archive.big_endian = match archive.record("byteorder", 64) {
        Ok(order) => order == b"big",
        // Written since PyTorch 2.1.
        Err(Problem::Record { reason, .. }) if reason == MISSING => false,
        Err(problem) => return Err(problem),
    };
    let stream = archive.pickle()?;
    pickle::load(&stream, &mut archive)
}

/// The pickle of an archive.
pub(crate) fn pickle(file: impl Read + Seek, length: u64) -> Result<Vec<u8>, Problem> {
    open(file, length)?.pickle()
}

fn open<R: Read + Seek>(file: R, length: u64) -> Result<Archive<R>, Problem> {
    let archive = ZipArchive::new(file).map_err(|error| match error {
        ZipError::Io(source) if source.kind() != std::io::ErrorKind::UnexpectedEof => {
            Problem::Io { doing: "read", source }
        }
        _ => Problem::Truncated(length),
    })?;
    if archive.is_empty() {
        return Err(Problem::EmptyZip);
    }
    Ok(Archive { prefix: prefix(&archive)?, archive, length, big_endian: false })
}

const MISSING: &str = "is missing";

/// The folder in the archive, with its slash.
fn prefix<R: Read + Seek>(archive: &ZipArchive<R>) -> Result<String, Problem> {
    let mut names = archive.file_names();
    let Some(pickle) = names.find(|name| {
        name.strip_suffix("data.pkl").is_some_and(|prefix| {
            prefix.is_empty() || prefix.strip_suffix('/').is_some_and(|folder| !folder.contains('/'))
        })
    }) else {
        let mut some: Vec<String> =
            archive.file_names().take(4).map(|name| name.escape_debug().to_string()).collect();
        if archive.len() > some.len() {
            some.push("…".to_owned());
        }
        return Err(Problem::NoPickle(some.join(", ")));
    };
    let prefix = pickle.trim_end_matches("data.pkl").to_owned();
    if archive.index_for_name(&format!("{prefix}constants.pkl")).is_some() {
        return Err(Problem::TorchScript);
    }
    Ok(prefix)
}

struct Archive<R> {
    archive: ZipArchive<R>,
    prefix: String,
    length: u64,
    big_endian: bool,
}

impl<R: Read + Seek> Archive<R> {
    fn pickle(&mut self) -> Result<Vec<u8>, Problem> {
        self.record("data.pkl", MAX_PICKLE)
    }

    fn record(&mut self, name: &str, limit: u64) -> Result<Vec<u8>, Problem> {
        let entry = format!("{}{name}", self.prefix);
        let bad = |reason: String| Problem::Record { entry: entry.escape_debug().to_string(), reason };
        let unreadable = |error: ZipError| bad(format!("cannot be read: {error}"));
        let index = self.archive.index_for_name(&entry).ok_or_else(|| bad(MISSING.to_owned()))?;
        // Raw, because this build of the zip crate opens no compressed record.
        if self.archive.by_index_raw(index).map_err(unreadable)?.compression() != CompressionMethod::Stored {
            return Err(bad("is compressed, which PyTorch never does".to_owned()));
        }
        let mut record = self.archive.by_index(index).map_err(unreadable)?;
        let size = record.size();
        if size > self.length {
            return Err(bad(format!("claims {size} bytes in a file of {}", self.length)));
        }
        if size > limit {
            return Err(Problem::Limit(format!(
                "has a record {entry} of {size} bytes; the limit is {limit}"
            )));
        }
        // Invariant: the size is at most that of the file, so it cannot request absurd memory.
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        record.read_to_end(&mut bytes).map_err(|error| bad(format!("cannot be read: {error}")))?;
        Ok(bytes)
    }
}

impl<R: Read + Seek> Storages for Archive<R> {
    fn read(&mut self, key: &str, element: usize) -> Result<Vec<u8>, Problem> {
        let mut bytes = self.record(&format!("data/{key}"), u64::MAX)?;
        if self.big_endian {
            pickle::reverse_elements(&mut bytes, element);
        }
        Ok(bytes)
    }

    fn budget(&self) -> u64 {
        pickle::budget(self.length)
    }
}

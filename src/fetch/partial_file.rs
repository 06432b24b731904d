//! Partial files: the bytes of a long range are kept on the disk in order, so that an interruption costs
//! only what was in flight.
//!
//! Invariant: a label next to the bytes identifies the version of the file. With another label the bytes
//! are dropped, so that two versions are never mixed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::FetchError;
use super::remote_file::Identity;

/// What the bytes of a partial file are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartialLabel {
    /// Without credentials. Matters only if no hash is known.
    pub(super) address: String,
    pub(super) length: u64,
    /// The strong validator of the server.
    pub(super) validator: Option<String>,
    /// The hash of the whole file, if known. Then all sources have the same bytes.
    pub(super) sha256: Option<String>,
    /// The range of the file.
    pub(super) start: u64,
    pub(super) end: u64,
    /// The boot of the system that wrote it: after a power cut, a file may have its length but not its
    /// bytes.
    boot: String,
}

impl PartialLabel {
    pub(super) fn new(
        address: &str,
        identity: &Identity,
        sha256: Option<&str>,
        (start, end): (u64, u64),
    ) -> Self {
        let Identity { length, validator } = identity.clone();
        let (address, sha256) = (address.to_owned(), sha256.map(str::to_owned));
        Self { address, length, validator, sha256, start, end, boot: boot() }
    }

    /// Whether bytes with the label `self` can be continued under the label `now`.
    fn serves(&self, now: &Self) -> bool {
        let same_part = (self.length, self.start, self.end) == (now.length, now.start, now.end);
        let same_bytes = match (&self.sha256, &now.sha256) {
            // The hash is verified at the end in any case.
            (Some(before), Some(now)) => before == now,
            _ => {
                self.validator.is_some()
                    && self.validator == now.validator
                    && self.address == now.address
                    && self.boot == now.boot
            }
        };
        same_part && same_bytes
    }
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// The bytes of a range that have arrived.
#[derive(Debug)]
pub(super) struct PartialFile {
    file: File,
    path: PathBuf,
    kept: u64,
}

impl PartialFile {
    /// Opens the partial file at `path` and labels it. Empties it if its label does not match.
    pub(super) fn open(path: &Path, label: &PartialLabel) -> Result<Self, FetchError> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(FetchError::disk("create", parent))?;
        }
        let label_path = label_path(path);
        let serves = read_label(path).is_some_and(|before| before.serves(label));
        if !serves {
            // The label goes first: bytes without a label are never used.
            let _ = fs::remove_file(&label_path);
        }
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .write(true)
            .truncate(!serves)
            .open(path)
            .map_err(FetchError::disk("open", path))?;
        if !serves {
            let text = serde_json::to_vec(label).map_err(io::Error::other);
            text.and_then(|text| fs::write(&label_path, text))
                .map_err(FetchError::disk("write", &label_path))?;
        }
        let end = file.seek(SeekFrom::End(0)).map_err(FetchError::disk("read", path))?;
        let kept = end.min(label.end - label.start);
        file.rewind().map_err(FetchError::disk("read", path))?;
        Ok(Self { file, path: path.to_owned(), kept })
    }

    /// Bytes at `path` that match this label. Nothing is changed.
    pub(super) fn look(path: &Path, label: &PartialLabel) -> u64 {
        let serves = read_label(path).is_some_and(|before| before.serves(label));
        if serves { kept_in(path).min(label.end - label.start) } else { 0 }
    }

    /// Bytes that an earlier run left.
    pub(super) fn kept(&self) -> u64 {
        self.kept
    }

    /// Reads what is kept, then `network`, which continues right after it, and keeps that too.
    pub(super) fn then<R: Read>(self, network: R) -> PartialFileReader<R> {
        PartialFileReader { partial: self, position: 0, network }
    }

    /// Removes a partial file that is no longer needed.
    pub(super) fn remove(path: &Path) {
        // If this fails, the next run overwrites it.
        let _ = fs::remove_file(label_path(path));
        let _ = fs::remove_file(path);
    }
}

/// `x.part` has its label in `x.part.json`.
pub(super) fn label_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".json");
    name.into()
}

fn read_label(path: &Path) -> Option<PartialLabel> {
    serde_json::from_slice(&fs::read(label_path(path)).ok()?).ok()
}

/// Bytes of a file that an earlier run began to download. Whether they match is checked when it resumes.
pub fn kept_in(part: &Path) -> u64 {
    let labeled = label_path(part).is_file();
    fs::metadata(part).map_or(0, |data| if labeled { data.len() } else { 0 })
}

/// Delivers the bytes of a partial file, then those of the network.
pub(super) struct PartialFileReader<R> {
    partial: PartialFile,
    position: u64,
    network: R,
}

impl<R: Read> Read for PartialFileReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.partial.kept - self.position.min(self.partial.kept);
        if left > 0 {
            let want = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let count = self
                .partial
                .file
                .read(&mut buffer[..want])
                .map_err(FetchError::disk("read", &self.partial.path))
                .map_err(io::Error::from)?;
            if count == 0 {
                return Err(io::Error::other("another program truncated a partial file"));
            }
            self.position += count as u64;
            return Ok(count);
        }
        let count = self.network.read(buffer)?;
        self.partial
            .file
            .write_all(&buffer[..count])
            .map_err(FetchError::disk("write", &self.partial.path))
            .map_err(io::Error::from)?;
        self.position += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(validator: Option<&str>, sha256: Option<&str>) -> PartialLabel {
        let identity = Identity { length: 10, validator: validator.map(str::to_owned) };
        PartialLabel::new("http://h/f", &identity, sha256, (0, 10))
    }

    #[test]
    fn kept_bytes_are_read_again_and_the_rest_is_kept_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.part");
        let mut text = String::new();
        let partial = PartialFile::open(&path, &label(Some("\"a\""), None)).unwrap();
        partial.then(&b"01234"[..]).read_to_string(&mut text).unwrap();
        let partial = PartialFile::open(&path, &label(Some("\"a\""), None)).unwrap();
        assert_eq!(partial.kept(), 5);
        text.clear();
        partial.then(&b"56789"[..]).read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), fs::read(&path).unwrap().len()), ("0123456789", 10));
    }

    #[test]
    fn bytes_of_another_version_or_without_a_validator_are_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.part");
        let kept = |before: PartialLabel, now: PartialLabel| {
            PartialFile::open(&path, &before)
                .unwrap()
                .then(&b"01234"[..])
                .read_to_end(&mut Vec::new())
                .unwrap();
            let kept = PartialFile::open(&path, &now).unwrap().kept();
            PartialFile::remove(&path);
            kept
        };
        assert_eq!(kept(label(Some("\"a\""), None), label(Some("\"b\""), None)), 0);
        assert_eq!(kept(label(None, None), label(None, None)), 0);
        assert_eq!(kept(label(None, Some("00")), label(Some("\"b\""), Some("00"))), 5);
        assert_eq!(kept(label(Some("\"a\""), Some("00")), label(Some("\"a\""), Some("11"))), 0);
        let rebooted = PartialLabel { boot: "another".into(), ..label(Some("\"a\""), None) };
        assert_eq!(kept(rebooted, label(Some("\"a\""), None)), 0);
    }
}

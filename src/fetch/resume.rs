//! The resume state of an installation: a list of members that are unpacked and verified, and partial
//! files of long ranges. The next run resumes from both, after verifying the bytes again.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::archive::UnpackedMember;
use super::error::FetchError;
use super::meter::HashingReader;
use super::partial_file::{PartialFile, PartialLabel};
use super::remote_file::Identity;
use super::sha256::Sha256;

/// The list of complete members.
const LIST: &str = "members.jsonl";

/// Shorter ranges are downloaded again: a file for each would cost more than it saves.
const WORTH_KEEPING: u64 = 1 << 20;

/// The resume state of one installation, in a directory.
#[derive(Debug)]
pub struct ResumeState {
    folder: PathBuf,
    whole: HashMap<(String, String), Listed>,
    /// Held while a thread appends to the list.
    list: Mutex<()>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Listed {
    archive: String,
    name: String,
    path: PathBuf,
    size: u64,
    sha256: String,
}

impl ResumeState {
    /// Reads the state in `folder`.
    pub fn open(folder: &Path) -> Self {
        let text = fs::read_to_string(folder.join(LIST)).unwrap_or_default();
        // The last line of a killed run may be truncated; its member is downloaded again.
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Listed>(line).ok());
        let whole = lines.map(|line| ((line.archive.clone(), line.name.clone()), line)).collect();
        Self { folder: folder.to_owned(), whole, list: Mutex::default() }
    }

    /// The member, if an earlier run unpacked it into `into` and its bytes have not changed.
    pub(super) fn take_up(
        &self,
        archive: &str,
        name: &str,
        path: &Path,
        into: &Path,
    ) -> Option<UnpackedMember> {
        let listed = self.whole.get(&(archive.to_owned(), name.to_owned()))?;
        if listed.path != path {
            return None;
        }
        let file = File::open(into.join(path)).ok()?;
        if file.metadata().ok()?.len() != listed.size {
            return None;
        }
        let mut hashing = HashingReader { inner: file, sha: Sha256::new() };
        std::io::copy(&mut hashing, &mut std::io::sink()).ok()?;
        let sha256: [u8; 32] = hashing.sha.finish();
        (hex::encode(sha256) == listed.sha256).then(|| UnpackedMember {
            name: listed.name.clone(),
            path: listed.path.clone(),
            size: listed.size,
            sha256,
        })
    }

    /// Whether an earlier run unpacked the member into `into`, judging by its length.
    pub(super) fn lists(&self, archive: &str, name: &str, path: &Path, into: &Path) -> bool {
        self.whole.get(&(archive.to_owned(), name.to_owned())).is_some_and(|listed| {
            let length = fs::metadata(into.join(path)).ok().map(|data| data.len());
            listed.path == path && length == Some(listed.size)
        })
    }

    /// Appends members that are complete now.
    pub(super) fn list(&self, archive: &str, members: &[UnpackedMember]) -> Result<(), FetchError> {
        let path = self.folder.join(LIST);
        let mut text = String::new();
        for member in members {
            let line = Listed {
                archive: archive.to_owned(),
                name: member.name.clone(),
                path: member.path.clone(),
                size: member.size,
                sha256: hex::encode(member.sha256),
            };
            let line = serde_json::to_string(&line).map_err(std::io::Error::other);
            text.push_str(&line.map_err(FetchError::disk("write", &path))?);
            text.push('\n');
        }
        let _one = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        // Not kept open: on Windows, a directory with an open file cannot be removed.
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(FetchError::disk("open", &path))?;
        file.write_all(text.as_bytes()).map_err(FetchError::disk("write", path))
    }

    /// A partial file for a range that is long enough, and its path.
    pub(super) fn partial_file(
        &self,
        address: &str,
        identity: &Identity,
        sha256: Option<&str>,
        part: (u64, u64),
    ) -> Result<Option<(PartialFile, PathBuf)>, FetchError> {
        if part.1 - part.0 < WORTH_KEEPING {
            return Ok(None);
        }
        let path = self.partial_path(address, part.0);
        let partial = PartialFile::open(&path, &PartialLabel::new(address, identity, sha256, part))?;
        Ok(Some((partial, path)))
    }

    /// Bytes of a range that an earlier run kept.
    pub(super) fn kept_bytes(
        &self,
        address: &str,
        identity: &Identity,
        sha256: Option<&str>,
        part: (u64, u64),
    ) -> u64 {
        PartialFile::look(
            &self.partial_path(address, part.0),
            &PartialLabel::new(address, identity, sha256, part),
        )
    }

    /// The path depends only on the name and the range. The label distinguishes versions.
    fn partial_path(&self, address: &str, start: u64) -> PathBuf {
        let name = address.rsplit('/').next().unwrap_or_default();
        let name: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
        self.folder.join(format!("{name}.{start}.part"))
    }
}

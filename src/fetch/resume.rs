//! What is whole already of an installation that is under way: members that were unpacked and
//! checked are written into a list, and long ranges are kept as they come. The next run takes up
//! both, after looking at the bytes once more.

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

/// The list of members that are whole.
const LIST: &str = "members.jsonl";

/// Shorter ranges are fetched again: a file for each would cost more than it saves.
const WORTH_KEEPING: u64 = 1 << 20;

/// The folder of parts of one installation.
#[derive(Debug)]
pub struct ResumeState {
    folder: PathBuf,
    whole: HashMap<(String, String), Listed>,
    /// One thread at a time adds to the list.
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
    /// Takes up what lies in `folder`.
    pub fn open(folder: &Path) -> Self {
        let text = fs::read_to_string(folder.join(LIST)).unwrap_or_default();
        // The last line of a killed run may be cut; its member is fetched again.
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Listed>(line).ok());
        let whole = lines.map(|line| ((line.archive.clone(), line.name.clone()), line)).collect();
        Self { folder: folder.to_owned(), whole, list: Mutex::default() }
    }

    /// The member, when an earlier run unpacked it below `into` and its bytes are still the same.
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

    /// Whether an earlier run unpacked the member below `into`, as far as its length tells.
    pub(super) fn lists(&self, archive: &str, name: &str, path: &Path, into: &Path) -> bool {
        self.whole.get(&(archive.to_owned(), name.to_owned())).is_some_and(|listed| {
            let length = fs::metadata(into.join(path)).ok().map(|data| data.len());
            listed.path == path && length == Some(listed.size)
        })
    }

    /// Lists members that are whole now.
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
        // It is not kept open: on Windows a folder with an open file in it cannot be removed.
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(FetchError::disk("open", &path))?;
        file.write_all(text.as_bytes()).map_err(FetchError::disk("write", path))
    }

    /// A spool for a range that is long enough, and where it lies.
    pub(super) fn spool(
        &self,
        address: &str,
        identity: &Identity,
        sha256: Option<&str>,
        part: (u64, u64),
    ) -> Result<Option<(PartialFile, PathBuf)>, FetchError> {
        if part.1 - part.0 < WORTH_KEEPING {
            return Ok(None);
        }
        let path = self.spool_path(address, part.0);
        let spool = PartialFile::open(&path, &PartialLabel::new(address, identity, sha256, part))?;
        Ok(Some((spool, path)))
    }

    /// Bytes of a range that an earlier run has kept.
    pub(super) fn spooled(
        &self,
        address: &str,
        identity: &Identity,
        sha256: Option<&str>,
        part: (u64, u64),
    ) -> u64 {
        PartialFile::look(
            &self.spool_path(address, part.0),
            &PartialLabel::new(address, identity, sha256, part),
        )
    }

    /// The place depends on the name and the part alone; the label tells versions apart.
    fn spool_path(&self, address: &str, start: u64) -> PathBuf {
        let name = address.rsplit('/').next().unwrap_or_default();
        let name: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
        self.folder.join(format!("{name}.{start}.part"))
    }
}

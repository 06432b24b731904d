//! What an installed data set says of itself, in a file in its folder: where it came from, how many
//! files lay in each of its folders, and what was found in it. By these it is told at small cost whether
//! all of it is still there, and whether what was found still holds.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::Summary;
use super::voc::LeftOut;
use crate::fetch::Sha256;
use crate::setup::SetupError;

/// The file's name.
pub(super) const STAMP: &str = ".yolo-setup.json";

/// A data set that is in place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub root: PathBuf,
    /// Where it came from, without credentials.
    pub sources: Vec<String>,
    /// Files that were unpacked, and their bytes.
    pub files: usize,
    /// Bytes of those files.
    pub bytes: u64,
    /// What lies in it; absent when the run that installed it ended before it had looked.
    pub summary: Option<Summary>,
    /// The description and the files that the summary is of, as [`state`] gives them.
    #[serde(default)]
    pub(super) seen: String,
    /// Whether it is a set that yolo knows by name, and not one of a yaml.
    #[serde(default)]
    pub(super) known: bool,
    /// The files of each folder as they were unpacked.
    #[serde(default)]
    pub(super) folders: Folders,
    /// Objects and images that are not in it, since they could not be converted.
    #[serde(default)]
    pub(super) left_out: Vec<LeftOut>,
}

/// Folders below a root, by their path, with `/` between its parts.
pub(super) type Folders = BTreeMap<String, Files>;

/// The files of one folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Files {
    pub(super) count: usize,
    pub(super) bytes: u64,
    /// Nanoseconds between 1970 and the last change of any of them.
    pub(super) newest: u64,
}

impl Installed {
    pub(super) fn read(root: &Path) -> Option<Self> {
        let installed: Self = serde_json::from_slice(&fs::read(root.join(STAMP)).ok()?).ok()?;
        // The first stamps did not say it, nor what lay in the folders.
        let known = installed.known
            || (installed.folders.is_empty() && root.join(format!("{}.yaml", installed.name)).is_file());
        Some(Self { root: root.to_owned(), known, ..installed })
    }

    pub(super) fn write(&self, root: &Path) -> Result<(), SetupError> {
        let path = root.join(STAMP);
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        fs::write(&path, text).map_err(SetupError::file("write", path))
    }

    /// How many of the files that were unpacked are not there any more.
    pub(super) fn missing(&self, now: &Folders) -> usize {
        let lost = |(folder, then): (&String, &Files)| {
            then.count.saturating_sub(now.get(folder).map_or(0, |files| files.count))
        };
        self.folders.iter().map(lost).sum()
    }

    /// Whether somebody has added or changed files, which a new fetch would take away.
    pub(super) fn has_others_files(&self, now: &Folders) -> bool {
        now.iter().any(|(folder, now)| {
            self.folders.get(folder).is_none_or(|then| {
                now.count > then.count
                    || now.bytes > then.bytes
                    || (now.count == then.count && now.bytes != then.bytes)
            })
        })
    }
}

/// The files of all folders below `root`, without what programs write beside data: this stamp and the
/// caches of trainers.
pub(super) fn folders_of(root: &Path) -> Folders {
    let mut folders = Folders::new();
    walk(root, "", &mut folders);
    folders
}

fn walk(folder: &Path, name: &str, folders: &mut Folders) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut files = Files::default();
    for entry in entries.flatten() {
        let (Ok(data), own) = (entry.metadata(), entry.file_name()) else { continue };
        let own = own.to_string_lossy();
        if data.is_dir() {
            let below = if name.is_empty() { own.into_owned() } else { format!("{name}/{own}") };
            walk(&entry.path(), &below, folders);
        } else if own != STAMP && !own.ends_with(".cache") && !own.ends_with(".yolo-cache") {
            let changed = data.modified().ok().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
            files.count += 1;
            files.bytes += data.len();
            files.newest =
                files.newest.max(changed.map_or(0, |at| u64::try_from(at.as_nanos()).unwrap_or(u64::MAX)));
        }
    }
    // Empty folders say nothing.
    if files.count > 0 {
        folders.insert(name.to_owned(), files);
    }
}

/// What a summary depends on, as one hash: the description and all files.
pub(super) fn state(yaml: &Path, folders: &Folders) -> String {
    let mut sha = Sha256::new();
    sha.update(&fs::read(yaml).unwrap_or_default());
    sha.update(&serde_json::to_vec(folders).unwrap_or_default());
    hex::encode(sha.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(root: &Path) -> Installed {
        Installed {
            name: "it".into(),
            root: root.into(),
            sources: Vec::new(),
            files: 0,
            bytes: 0,
            summary: None,
            seen: String::new(),
            known: false,
            folders: folders_of(root),
            left_out: Vec::new(),
        }
    }

    #[test]
    fn what_is_missing_is_told_from_what_was_added() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("images/a", "aa");
        write("images/b", "bb");
        write("labels/a", "0 1");
        let it = installed(folder.path());
        let judged = || {
            let now = folders_of(folder.path());
            (it.missing(&now), it.has_others_files(&now))
        };
        assert_eq!(judged(), (0, false));
        write("labels.cache", "what a trainer keeps");
        write("labels/train.yolo-cache", "what yolo's keeps");
        write(STAMP, "{}");
        assert_eq!(judged(), (0, false));
        fs::remove_file(folder.path().join("images/b")).unwrap();
        assert_eq!(judged(), (1, false));
        fs::remove_dir_all(folder.path().join("labels")).unwrap();
        assert_eq!(judged(), (2, false));
        write("notes/mine", "x");
        assert_eq!(judged(), (2, true));
    }

    #[test]
    fn a_changed_label_makes_another_state() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        fs::write(&path, "0").unwrap();
        let before = state(Path::new("none"), &folders_of(folder.path()));
        assert_eq!(before, state(Path::new("none"), &folders_of(folder.path())));
        fs::write(&path, "01").unwrap();
        assert_ne!(before, state(Path::new("none"), &folders_of(folder.path())));
    }
}

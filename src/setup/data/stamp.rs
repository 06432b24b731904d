//! The stamp of an installed data set, a file in its folder: its sources, the number of files per
//! folder, and its summary. It shows at little cost whether all files still exist and whether the
//! summary is still valid.

use std::collections::BTreeMap;
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::summary::Summary;
use super::voc::LeftOut;
use crate::fetch::Sha256;
use crate::setup::error::SetupError;

/// The file's name.
pub(super) const STAMP: &str = ".yolo-setup.json";

/// An installed data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    /// Its name.
    pub name: String,
    /// Its directory.
    pub root: PathBuf,
    /// Where it was downloaded from, without credentials.
    pub sources: Vec<String>,
    /// The number of unpacked files.
    pub files: usize,
    /// Bytes of those files.
    pub bytes: u64,
    /// Its summary; absent if the run that installed it ended before verifying it.
    pub summary: Option<Summary>,
    /// [`Installed::state`] at the time of the summary.
    #[serde(default)]
    pub(super) seen: String,
    /// Whether yolo knows it by name, rather than by a yaml of the user.
    #[serde(default)]
    pub(super) known: bool,
    /// The files of each folder, as unpacked.
    #[serde(default)]
    pub(super) folders: Folders,
    /// Objects and images that could not be converted.
    #[serde(default)]
    pub(super) left_out: Vec<LeftOut>,
    /// The cache of [`Installed::now`].
    #[serde(skip)]
    pub(super) now: OnceLock<Folders>,
}

/// Folders by their path relative to the root, with `/` as the separator.
pub(super) type Folders = BTreeMap<String, Files>;

/// The files of one folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Files {
    pub(super) count: usize,
    pub(super) bytes: u64,
    /// The newest modification time, in nanoseconds since 1970.
    pub(super) newest: u64,
}

impl Installed {
    pub(super) fn read(root: &Path) -> Option<Self> {
        let installed: Self = serde_json::from_slice(&fs::read(root.join(STAMP)).ok()?).ok()?;
        // The first version of stamps had neither `known` nor `folders`.
        let known = installed.known
            || (installed.folders.is_empty() && root.join(format!("{}.yaml", installed.name)).is_file());
        Some(Self { root: root.to_owned(), known, ..installed })
    }

    pub(super) fn write(&self, root: &Path) -> Result<(), SetupError> {
        let path = root.join(STAMP);
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        fs::write(&path, text).map_err(SetupError::file("write", path))
    }

    /// The files of each folder as they are now. They are counted once, since a large data set has hundreds
    /// of thousands of files.
    pub(super) fn now(&self) -> &Folders {
        self.now.get_or_init(|| folders_of(&self.root))
    }

    /// How many unpacked files no longer exist.
    pub(super) fn missing(&self) -> usize {
        let lost = |(folder, then): (&String, &Files)| {
            then.count.saturating_sub(self.now().get(folder).map_or(0, |files| files.count))
        };
        self.folders.iter().map(lost).sum()
    }

    /// Whether files were added or changed, which a new download would remove.
    pub(super) fn has_others_files(&self) -> bool {
        self.now().iter().any(|(folder, now)| {
            self.folders.get(folder).is_none_or(|then| {
                now.count > then.count
                    || now.bytes > then.bytes
                    || (now.count == then.count && now.bytes != then.bytes)
            })
        })
    }

    /// A hash of everything that the summary depends on: the yaml and all files.
    pub(super) fn state(&self, yaml: &Path) -> String {
        let mut sha = Sha256::new();
        sha.update(&fs::read(yaml).unwrap_or_default());
        sha.update(&serde_json::to_vec(self.now()).unwrap_or_default());
        hex::encode(sha.finish())
    }
}

/// The files of all folders in `root`, except those that programs write next to data: this stamp and
/// the caches of trainers.
pub(super) fn folders_of(root: &Path) -> Folders {
    walk(root, "")
}

fn walk(folder: &Path, name: &str) -> Folders {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let (below, files): (Vec<DirEntry>, Vec<DirEntry>) =
        entries.partition(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let below = below.par_iter().flat_map_iter(|entry| {
        let own = entry.file_name();
        let own = own.to_string_lossy();
        walk(&entry.path(), &if name.is_empty() { own.into_owned() } else { format!("{name}/{own}") })
    });
    let mut folders: Folders = below.collect();
    let files = files.par_iter().filter_map(Files::of).reduce(Files::default, Files::and);
    // Empty folders do not matter.
    if files.count > 0 {
        folders.insert(name.to_owned(), files);
    }
    folders
}

impl Files {
    /// One file; `None` for those that programs write next to data.
    fn of(entry: &DirEntry) -> Option<Self> {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name == STAMP || name.ends_with(".cache") || name.ends_with(".yolo-cache") {
            return None;
        }
        let data = entry.metadata().ok()?;
        let changed = data.modified().ok().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        let newest = changed.map_or(0, |at| u64::try_from(at.as_nanos()).unwrap_or(u64::MAX));
        Some(Self { count: 1, bytes: data.len(), newest })
    }

    fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            bytes: self.bytes + other.bytes,
            newest: self.newest.max(other.newest),
        }
    }
}

/// The data sets that setup installed in this folder.
pub(in crate::setup) fn installed_in(folder: &Path) -> Vec<Installed> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().filter_map(|entry| Installed::read(&entry.path())).collect()
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
            now: OnceLock::new(),
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
            let it = it.clone();
            (it.missing(), it.has_others_files())
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
        let state = || installed(folder.path()).state(Path::new("none"));
        let before = state();
        assert_eq!(before, state());
        fs::write(&path, "01").unwrap();
        assert_ne!(before, state());
    }
}

//! Staging directories. An installation is assembled in a directory next to its target and published
//! by one rename. The directory outlives an interruption, so that the next run resumes it.

use std::fs;
use std::path::{Path, PathBuf};

use super::disk::{folder_size, replace, sync};
use super::error::FetchError;
use super::folder_lock::FolderLock;

/// How the names of staging directories begin.
const PREFIX: &str = ".incoming-";

/// The subdirectory that will be published.
const TREE: &str = "tree";

/// A staging directory. Dropping it leaves it on the disk for the next run to resume;
/// [`Staging::discard`] removes it.
///
/// Invariant: the target is complete or absent. It appears by a rename of a complete tree.
#[derive(Debug)]
pub struct Staging {
    base: PathBuf,
    tree: PathBuf,
    parts: PathBuf,
    resumed: bool,
}

impl Staging {
    /// Opens the staging directory for `name`, next to where it will be published, with everything that
    /// an earlier run left in it.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn open(lock: &FolderLock, name: &str) -> Result<Self, FetchError> {
        let base = staging_dir(&lock.folder().join(name));
        let (tree, parts) = tree_and_parts(&base);
        let resumed = parts.is_dir();
        for folder in [&tree, &parts] {
            fs::create_dir_all(folder).map_err(FetchError::disk("create", folder))?;
        }
        Ok(Self { base, tree, parts, resumed })
    }

    /// Removes staging directories that a killed process left in a state that cannot be resumed. The
    /// lock ensures that no other process is using them.
    pub fn sweep(lock: &FolderLock) {
        for folder in staging_dirs_in(lock.folder()) {
            if !folder.join(TREE).is_dir() {
                // If this fails, the next run tries again; the directory disturbs nothing.
                let _ = fs::remove_dir_all(folder);
            }
        }
    }

    /// The tree that will be published.
    pub fn path(&self) -> &Path {
        &self.tree
    }

    /// The directory of incomplete files and resume state, which is never published.
    pub fn parts(&self) -> &Path {
        &self.parts
    }

    /// Whether an earlier run left something here.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// Total bytes in it.
    pub(crate) fn size(&self) -> u64 {
        folder_size(&self.base)
    }

    /// Empties it, because its contents were wrong.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub fn clear(&mut self) -> Result<(), FetchError> {
        for folder in [&self.tree, &self.parts] {
            fs::remove_dir_all(folder).map_err(FetchError::disk("remove", folder))?;
            fs::create_dir_all(folder).map_err(FetchError::disk("create", folder))?;
        }
        self.resumed = false;
        Ok(())
    }

    /// Removes it with all its contents.
    pub fn discard(self) {
        // What cannot be removed is reused or overwritten by the next run.
        let _ = fs::remove_dir_all(&self.base);
    }

    /// Publishes the whole tree at `target` by one rename, replacing what is there.
    ///
    /// # Errors
    /// When the rename fails.
    pub fn publish(self, target: &Path) -> Result<(), FetchError> {
        let tree = self.tree.clone();
        self.publish_path(&tree, target)
    }

    /// Publishes one file or directory of it at `target` by one rename, and removes the rest.
    ///
    /// # Errors
    /// When the rename fails.
    pub fn publish_path(self, from: &Path, target: &Path) -> Result<(), FetchError> {
        if from.is_file() {
            // Otherwise a power cut after the rename could leave an empty file under the final name.
            sync(from).map_err(FetchError::disk("write", from))?;
        }
        replace(from, target)?;
        self.discard();
        Ok(())
    }
}

/// The staging directory for `target`, next to it.
pub fn staging_dir(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!("{PREFIX}{name}"))
}

/// All staging directories in `folder`.
pub fn staging_dirs_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let ours = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(PREFIX);
    entries.flatten().filter(ours).map(|entry| entry.path()).collect()
}

/// The two subdirectories of a staging directory: the tree that will be published, and the parts that
/// will not.
pub fn tree_and_parts(base: &Path) -> (PathBuf, PathBuf) {
    (base.join(TREE), base.join("parts"))
}

#[cfg(test)]
mod tests {
    use super::super::folder_lock::{LOCK, OWNER};
    use super::super::progress::Silent;
    use super::*;

    #[test]
    fn what_a_dead_process_left_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join(".incoming-dead/lib")).unwrap();
        fs::create_dir(folder.path().join("2.11.0-cpu")).unwrap();
        Staging::sweep(&FolderLock::acquire(folder.path(), &Silent).unwrap());
        assert!(!folder.path().join(".incoming-dead").exists());
        assert!(folder.path().join("2.11.0-cpu").exists());
    }

    #[test]
    fn publishing_replaces_the_target_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("it");
        let lock = FolderLock::acquire(folder.path(), &Silent).unwrap();
        for text in ["old", "new"] {
            let staging = Staging::open(&lock, "it").unwrap();
            fs::write(staging.path().join("file"), text).unwrap();
            staging.publish(&target).unwrap();
            assert_eq!(fs::read_to_string(target.join("file")).unwrap(), text);
        }
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.retain(|name| name != LOCK && name != OWNER);
        assert_eq!(names, ["it"]);
    }

    #[test]
    fn a_staging_directory_outlives_the_run_until_it_is_discarded() {
        let folder = tempfile::tempdir().unwrap();
        let lock = FolderLock::acquire(folder.path(), &Silent).unwrap();
        let first = Staging::open(&lock, "it").unwrap();
        assert!(!first.resumed());
        fs::write(first.path().join("file"), "half").unwrap();
        drop(first);
        Staging::sweep(&lock);
        let second = Staging::open(&lock, "it").unwrap();
        assert!(second.resumed() && second.path().join("file").exists());
        second.discard();
        assert_eq!(staging_dirs_in(folder.path()), Vec::<PathBuf>::new());
    }
}

//! The disk's side of an installation: a lock that names its owner, a folder in the making that
//! is published by one rename, and the room that is left.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{Event, FetchError, Progress};

/// Folders whose names begin so are in the making, or were replaced.
const INCOMING: &str = ".incoming-";

/// A folder's lock, held until dropped. The system frees it when the process ends, however.
#[derive(Debug)]
pub struct Lock {
    _file: File,
    folder: PathBuf,
}

impl Lock {
    /// Creates `folder` and locks it; waits for another owner and says who it is.
    ///
    /// # Errors
    /// When the folder cannot be made or written.
    pub fn acquire(folder: &Path, progress: &dyn Progress) -> Result<Self, FetchError> {
        fs::create_dir_all(folder).map_err(FetchError::disk("create", folder))?;
        let path = folder.join(".lock");
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .open(&path)
            .map_err(FetchError::disk("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                // An owner that has not written its name yet is waited for all the same.
                let _ = file.read_to_string(&mut owner);
                let owner = if owner.is_empty() { "another yolo" } else { owner.trim() };
                let text = format!("{owner} is setting up {}; waiting for it", folder.display());
                progress.event(Event::Note { text: &text });
                file.lock().map_err(FetchError::disk("lock", &path))?;
            }
            Err(TryLockError::Error(source)) => {
                return Err(FetchError::Disk { action: "lock", path, source });
            }
        }
        let owner = format!("process {} ({})\n", std::process::id(), program());
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(owner.as_bytes()))
            .map_err(FetchError::disk("write", &path))?;
        Ok(Self { _file: file, folder: folder.to_owned() })
    }

    /// Removes what a killed process left: whoever holds the lock is the only one at work here.
    pub fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(INCOMING) {
                // What cannot be removed now is tried again next time, and is in nobody's way.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

fn program() -> String {
    let words: Vec<String> =
        std::env::args_os().take(2).map(|word| word.to_string_lossy().into_owned()).collect();
    words.join(" ")
}

/// A folder in the making, removed unless it is published.
#[derive(Debug)]
pub struct Incoming {
    folder: TempDir,
}

impl Incoming {
    /// A new empty folder beside the place where it will be published.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(lock: &Lock) -> Result<Self, FetchError> {
        let folder = tempfile::Builder::new()
            .prefix(INCOMING)
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .tempdir_in(&lock.folder)
            .map_err(FetchError::disk("create a folder in", &lock.folder))?;
        Ok(Self { folder })
    }

    /// Where to write.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Puts the folder at `target` by one rename; an older one steps aside first.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn publish(self, target: &Path) -> Result<(), FetchError> {
        let aside = self.folder.path().with_extension("replaced");
        if target.symlink_metadata().is_ok() {
            fs::rename(target, &aside).map_err(FetchError::disk("move aside", target))?;
        }
        fs::rename(self.folder.path(), target).map_err(FetchError::disk("put in place", target))?;
        // From here on nothing is to be removed under the old name.
        let _ = self.folder.keep();
        if let Ok(parent) = File::open(target.parent().unwrap_or(target)) {
            // The rename itself reaches the disk; a file system that cannot is not the user's fault.
            let _ = parent.sync_all();
        }
        let _ = fs::remove_dir_all(&aside);
        Ok(())
    }
}

/// Bytes that this user may still write on the file system of `path`, which need not exist yet.
///
/// # Errors
/// When no parent of it can be asked.
pub fn free_bytes(path: &Path) -> Result<u64, FetchError> {
    let existing = path.ancestors().find(|folder| folder.exists()).unwrap_or(path);
    let stat = rustix::fs::statvfs(existing)
        .map_err(|error| FetchError::disk("ask for the free space of", existing)(error.into()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::super::Silent;
    use super::*;

    #[test]
    fn the_rest_of_a_dead_process_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join(".incoming-dead/lib")).unwrap();
        fs::create_dir(folder.path().join("2.11.0-cpu")).unwrap();
        let lock = Lock::acquire(folder.path(), &Silent).unwrap();
        lock.sweep();
        assert!(!folder.path().join(".incoming-dead").exists());
        assert!(folder.path().join("2.11.0-cpu").exists());
    }

    #[test]
    fn publishing_replaces_what_was_there_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("it");
        let lock = Lock::acquire(folder.path(), &Silent).unwrap();
        for text in ["old", "new"] {
            let incoming = Incoming::new(&lock).unwrap();
            fs::write(incoming.path().join("file"), text).unwrap();
            incoming.publish(&target).unwrap();
            assert_eq!(fs::read_to_string(target.join("file")).unwrap(), text);
        }
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".lock", "it"]);
    }

    #[test]
    fn an_abandoned_folder_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let lock = Lock::acquire(folder.path(), &Silent).unwrap();
        let path = Incoming::new(&lock).unwrap().path().to_owned();
        assert!(!path.exists());
    }

    #[test]
    fn free_space_is_known_for_a_folder_that_is_not_there_yet() {
        let folder = tempfile::tempdir().unwrap();
        assert!(free_bytes(&folder.path().join("a/b/c")).unwrap() > 0);
    }
}

//! A lock on a directory, so that only one process installs into it. The lock file names its owner
//! for the message that a waiting process shows.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use super::error::FetchError;
use super::progress::{Progress, ProgressEvent};

/// The file that is locked.
pub(super) const LOCK: &str = ".lock";

/// The file that names the owner. On Windows other processes cannot read a locked file.
pub(super) const OWNER: &str = if cfg!(windows) { ".lock-owner" } else { LOCK };

/// The lock of a directory, held until dropped. The system releases it when the process ends, even if
/// it is killed.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
    folder: PathBuf,
}

impl FolderLock {
    /// Creates `folder` if needed and locks it. If another process holds the lock, reports who it is and
    /// waits.
    ///
    /// # Errors
    /// When the directory cannot be created or written.
    pub fn acquire(folder: &Path, progress: &dyn Progress) -> Result<Self, FetchError> {
        fs::create_dir_all(folder).map_err(FetchError::disk("create", folder))?;
        let path = folder.join(LOCK);
        let file = OpenOptions::new()
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .open(&path)
            .map_err(FetchError::disk("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                // An owner that has not written its name yet holds the lock all the same.
                let owner = fs::read_to_string(folder.join(OWNER)).unwrap_or_default();
                let owner = if owner.is_empty() { "another yolo process" } else { owner.trim() };
                let text = format!("{owner} is setting up {}; waiting for it to finish", folder.display());
                progress.event(ProgressEvent::Note { text: &text });
                file.lock().map_err(FetchError::disk("lock", &path))?;
            }
            Err(TryLockError::Error(source)) => {
                return Err(FetchError::Disk { action: "lock", path, source });
            }
        }
        let owner = format!("process {} ({})\n", std::process::id(), program());
        let owner_file = folder.join(OWNER);
        fs::write(&owner_file, owner).map_err(FetchError::disk("write", owner_file))?;
        Ok(Self { _file: file, folder: folder.to_owned() })
    }

    /// The locked directory.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

#[cfg(windows)]
impl Drop for FolderLock {
    fn drop(&mut self) {
        // If this fails, the next owner overwrites the file.
        let _ = fs::remove_file(self.folder.join(OWNER));
    }
}

/// The first two arguments of this process, such as `yolo setup`.
fn program() -> String {
    let arguments: Vec<String> =
        std::env::args_os().take(2).map(|argument| argument.to_string_lossy().into_owned()).collect();
    arguments.join(" ")
}

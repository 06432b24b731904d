//! The disk under an installation: free space, mount points, sizes of directories, and writes and
//! renames that survive a power cut.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use super::error::FetchError;

/// Space that is always left free on a disk: a system without any stops working.
pub(crate) const MARGIN: u64 = 16 << 20;

/// Bytes that this user may still write on the file system of `path`, which need not exist yet.
///
/// # Errors
/// When the system does not report the free space.
pub fn free_bytes(path: &Path) -> Result<u64, FetchError> {
    let existing = path.ancestors().find(|folder| folder.exists()).unwrap_or(path);
    fs4::available_space(existing).map_err(FetchError::disk("read the free space of", existing))
}

/// The mount point of the file system that `path`, which need not exist yet, is or will be on.
pub fn mount_of(path: &Path) -> PathBuf {
    let existing = path.ancestors().find(|folder| folder.exists()).unwrap_or(path);
    // On Windows, canonical paths begin with `\\?\`, which nobody recognizes as a drive.
    let real = if cfg!(windows) { std::path::absolute(existing) } else { existing.canonicalize() };
    let existing = real.unwrap_or_else(|_| existing.to_owned());
    let device = device(&existing);
    let same = existing.ancestors().take_while(|folder| self::device(folder) == device);
    same.last().unwrap_or(&existing).to_owned()
}

#[cfg(unix)]
fn device(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(path).ok().map(|data| data.dev())
}

/// On Windows every drive is a file system.
#[cfg(not(unix))]
fn device(_path: &Path) -> Option<u64> {
    None
}

/// Total bytes of all files in a directory and its subdirectories.
pub(crate) fn folder_size(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(data) if data.is_dir() => folder_size(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

/// Waits until the bytes of a file are on the disk. Windows requires write access for this.
pub(crate) fn sync(path: &Path) -> std::io::Result<()> {
    OpenOptions::new().write(true).open(path)?.sync_data()
}

/// Waits until everything that was written to the file system of this folder is on the disk: once for many files, where
/// waiting for each would take long. Elsewhere than on Linux there is no such call, and nothing is done.
pub(crate) fn sync_file_system(folder: &Path) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    match rustix::fs::syncfs(File::open(folder)?) {
        // WSL 1 and filters of system calls in containers do not have it, and the files are there all the same.
        Ok(()) | Err(rustix::io::Errno::NOSYS | rustix::io::Errno::INVAL | rustix::io::Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    #[cfg(not(target_os = "linux"))]
    let _ = folder;
    Ok(())
}

/// Renames `from` to `to`. What was at `to` before is at `from` afterwards, or gone.
pub(super) fn replace(from: &Path, to: &Path) -> Result<(), FetchError> {
    let parent = to.parent().unwrap_or(to);
    fs::create_dir_all(parent).map_err(FetchError::disk("create", parent))?;
    if !exchange(from, to) {
        if to.symlink_metadata().is_ok_and(|data| data.is_dir()) {
            let aside = from.with_extension("replaced");
            rename(to, &aside).map_err(FetchError::disk("move aside", to))?;
        }
        rename(from, to).map_err(FetchError::disk("put in place", to))?;
    }
    if let Ok(parent) = File::open(parent) {
        // Makes the rename durable. Some file systems cannot, and the user can do nothing about it.
        let _ = parent.sync_all();
    }
    Ok(())
}

/// Swaps two paths atomically, where the system supports it and both exist.
#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> bool {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn exchange(_one: &Path, _other: &Path) -> bool {
    false
}

/// Renames, with retries on Windows, where a virus scanner may hold a new file open for a moment.
fn rename(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut pause = std::time::Duration::from_millis(10);
    loop {
        match fs::rename(from, to) {
            Err(error)
                if cfg!(windows)
                    && error.kind() == std::io::ErrorKind::PermissionDenied
                    && pause < std::time::Duration::from_secs(2) =>
            {
                std::thread::sleep(pause);
                pause *= 2;
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_space_is_reported_for_a_folder_that_does_not_exist_yet() {
        let folder = tempfile::tempdir().unwrap();
        assert!(free_bytes(&folder.path().join("a/b/c")).unwrap() > 0);
    }
}

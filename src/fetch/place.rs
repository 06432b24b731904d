//! The disk's side of an installation: a lock that names its owner, a folder in the making that
//! outlives an interruption and is published by one rename, and the room that is left.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use super::{Event, FetchError, Progress};

/// The file that is locked.
const LOCK: &str = ".lock";

/// The file that names the owner. On Windows nobody else can read a file that is locked.
const OWNER: &str = if cfg!(windows) { ".lock-owner" } else { LOCK };

/// Room that is left on a disk whatever is put on it: a system without any does not work.
pub(crate) const MARGIN: u64 = 16 << 20;

/// Folders whose names begin so are in the making.
const INCOMING: &str = ".incoming-";

/// The part of such a folder that will be published.
const TREE: &str = "tree";

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
                // An owner that has not written its name yet is waited for all the same.
                let owner = fs::read_to_string(folder.join(OWNER)).unwrap_or_default();
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
        let named = folder.join(OWNER);
        fs::write(&named, owner).map_err(FetchError::disk("write", named))?;
        Ok(Self { _file: file, folder: folder.to_owned() })
    }

    /// Removes what a killed process left and no run can go on with: whoever holds the lock is the
    /// only one at work here.
    pub fn sweep(&self) {
        for folder in unfinished_in(&self.folder) {
            if !folder.join(TREE).is_dir() {
                // What cannot be removed now is tried again next time, and is in nobody's way.
                let _ = fs::remove_dir_all(folder);
            }
        }
    }
}

#[cfg(windows)]
impl Drop for Lock {
    fn drop(&mut self) {
        // A name that stays is overwritten by the next owner.
        let _ = fs::remove_file(self.folder.join(OWNER));
    }
}

/// All folders in the making below `folder`.
pub fn unfinished_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let ours = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(INCOMING);
    entries.flatten().filter(ours).map(|entry| entry.path()).collect()
}

fn program() -> String {
    let words: Vec<String> =
        std::env::args_os().take(2).map(|word| word.to_string_lossy().into_owned()).collect();
    words.join(" ")
}

/// A folder in the making. It stays where it is when the program ends early, so that the next run
/// goes on with what came; [`Incoming::discard`] removes it.
#[derive(Debug)]
pub struct Incoming {
    base: PathBuf,
    tree: PathBuf,
    parts: PathBuf,
    resumed: bool,
}

impl Incoming {
    /// The folder in which `name` is made, beside the place where it will be published. What an
    /// earlier run left in it is still there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(lock: &Lock, name: &str) -> Result<Self, FetchError> {
        let base = unfinished(&lock.folder.join(name));
        let (tree, parts) = tree_and_parts(&base);
        let resumed = parts.is_dir();
        for folder in [&tree, &parts] {
            fs::create_dir_all(folder).map_err(FetchError::disk("create", folder))?;
        }
        Ok(Self { base, tree, parts, resumed })
    }

    /// What will be published.
    pub fn path(&self) -> &Path {
        &self.tree
    }

    /// Where parts lie that are not whole yet; never published.
    pub fn parts(&self) -> &Path {
        &self.parts
    }

    /// Whether an earlier run has left something here.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// Bytes that it holds.
    pub(crate) fn size(&self) -> u64 {
        folder_size(&self.base)
    }

    /// Empties it, because what came was wrong.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn clear(&mut self) -> Result<(), FetchError> {
        for folder in [&self.tree, &self.parts] {
            fs::remove_dir_all(folder).map_err(FetchError::disk("remove", folder))?;
            fs::create_dir_all(folder).map_err(FetchError::disk("create", folder))?;
        }
        self.resumed = false;
        Ok(())
    }

    /// Removes it with all that came.
    pub fn discard(self) {
        // What cannot be removed is used or overwritten by the next run.
        let _ = fs::remove_dir_all(&self.base);
    }

    /// Puts the folder at `target` by one rename; an older one is exchanged for it.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn publish(self, target: &Path) -> Result<(), FetchError> {
        let tree = self.tree.clone();
        self.publish_path(&tree, target)
    }

    /// Puts one file or folder of it at `target`, by one rename, and removes the rest.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn publish_path(self, from: &Path, target: &Path) -> Result<(), FetchError> {
        if from.is_file() {
            // A power cut after the rename must not find an empty file under the right name.
            sync(from).map_err(FetchError::disk("write", from))?;
        }
        replace(from, target)?;
        self.discard();
        Ok(())
    }
}

/// Waits until the bytes of a file are on the disk. Windows does so only for those who may write it.
pub(crate) fn sync(path: &Path) -> std::io::Result<()> {
    OpenOptions::new().write(true).open(path)?.sync_data()
}

/// Where that which will be published at `target` is in the making: beside it.
pub fn unfinished(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!("{INCOMING}{name}"))
}

/// What of a folder in the making will be published, and what lies beside it until then.
pub fn tree_and_parts(base: &Path) -> (PathBuf, PathBuf) {
    (base.join(TREE), base.join("parts"))
}

/// Bytes of all files below a folder.
pub(crate) fn folder_size(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(data) if data.is_dir() => folder_size(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

/// Renames `from` to `to`; what was there before is at `from` afterwards, or gone.
fn replace(from: &Path, to: &Path) -> Result<(), FetchError> {
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
        // The rename itself reaches the disk; a file system that cannot is not the user's fault.
        let _ = parent.sync_all();
    }
    Ok(())
}

/// Swaps two paths in one step, where the system can and both are there.
#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> bool {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn exchange(_one: &Path, _other: &Path) -> bool {
    false
}

/// Renames. On Windows a virus scanner may hold a new file open for a moment, so that several
/// attempts are made.
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

/// Where the file system begins that `path`, which need not exist yet, is or will be on.
pub fn mount_of(path: &Path) -> PathBuf {
    let existing = path.ancestors().find(|folder| folder.exists()).unwrap_or(path);
    // Windows' canonical paths begin with `\\?\`, which nobody knows as the name of a drive.
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

/// On Windows a drive is a file system of its own.
#[cfg(not(unix))]
fn device(_path: &Path) -> Option<u64> {
    None
}

/// Bytes that this user may still write on the file system of `path`, which need not exist yet.
///
/// # Errors
/// When no parent of it can be asked.
pub fn free_bytes(path: &Path) -> Result<u64, FetchError> {
    let existing = path.ancestors().find(|folder| folder.exists()).unwrap_or(path);
    fs4::available_space(existing).map_err(FetchError::disk("ask for the free space of", existing))
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
            let incoming = Incoming::open(&lock, "it").unwrap();
            fs::write(incoming.path().join("file"), text).unwrap();
            incoming.publish(&target).unwrap();
            assert_eq!(fs::read_to_string(target.join("file")).unwrap(), text);
        }
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.retain(|name| name != LOCK && name != OWNER);
        assert_eq!(names, ["it"]);
    }

    #[test]
    fn a_folder_in_the_making_outlives_the_run_and_goes_when_discarded() {
        let folder = tempfile::tempdir().unwrap();
        let lock = Lock::acquire(folder.path(), &Silent).unwrap();
        let first = Incoming::open(&lock, "it").unwrap();
        assert!(!first.resumed());
        fs::write(first.path().join("file"), "half").unwrap();
        drop(first);
        lock.sweep();
        let second = Incoming::open(&lock, "it").unwrap();
        assert!(second.resumed() && second.path().join("file").exists());
        second.discard();
        assert_eq!(unfinished_in(folder.path()), Vec::<PathBuf>::new());
    }

    #[test]
    fn free_space_is_known_for_a_folder_that_is_not_there_yet() {
        let folder = tempfile::tempdir().unwrap();
        assert!(free_bytes(&folder.path().join("a/b/c")).unwrap() > 0);
    }
}

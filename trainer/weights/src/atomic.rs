//! Replaces a file atomically: the new content is written to a hidden file in the same folder, synced to
//! disk, and renamed. Invariant: whenever the process or the machine stops, the path holds the whole
//! old file or the whole new one. A killed writer leaves its hidden file behind, and the next writer
//! of the same path removes it; a lock shows that nobody uses it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::{Problem, WeightsError};

/// The extension of unfinished files.
const PARTIAL: &str = ".partial";

/// A new content of a file before it gets the file's name. Another program, or another library, may write it to
/// [`Self::path`], and it can be read back before [`Self::commit`]. Dropped without that, it leaves the old file.
#[derive(Debug)]
pub struct Replacement {
    target: PathBuf,
    partial: NamedTempFile,
}

impl Replacement {
    /// Creates an empty hidden file in the folder of `path`.
    ///
    /// # Errors
    /// If the folder is not writable.
    pub fn begin(path: &Path) -> Result<Self, WeightsError> {
        Self::begin_inner(path).map_err(|problem| WeightsError::new(path, problem))
    }

    /// Where the new content is written. Do not replace this file by another one.
    pub fn path(&self) -> &Path {
        self.partial.path()
    }

    /// Writes the new content.
    ///
    /// # Errors
    /// If the disk is full or fails.
    pub fn write(&self, bytes: &[u8]) -> Result<(), WeightsError> {
        self.write_with(bytes.len() as u64, |out| out.write_all(bytes))
            .map_err(|problem| WeightsError::new(&self.target, problem))
    }

    /// Gives the new content the name of the file.
    ///
    /// # Errors
    /// If the disk is full or fails. An existing file is then unchanged.
    pub fn commit(self) -> Result<(), WeightsError> {
        let target = self.target.clone();
        let length = self.partial.as_file().metadata().map_or(0, |metadata| metadata.len());
        self.commit_inner(length).map_err(|problem| WeightsError::new(&target, problem))
    }

    fn begin_inner(path: &Path) -> Result<Self, Problem> {
        // A link stays a link; its target is replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = target.file_name().ok_or(Problem::NotAFile)?;
        let folder = folder_of(&target);
        let mut prefix = OsString::from(".");
        prefix.push(name);
        prefix.push(".");
        remove_stale(folder, &prefix);

        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(PARTIAL);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // Like any new file; the umask applies.
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let partial = builder.tempfile_in(folder).map_err(failed("created", 0))?;
        // Without locks in the file system, stale files stay, but nothing else goes wrong.
        let _ = partial.as_file().try_lock();
        Ok(Self { target, partial })
    }

    fn write_with(
        &self,
        needed: u64,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Problem> {
        let mut out = BufWriter::with_capacity(1 << 20, self.partial.as_file());
        content(&mut out).and_then(|()| out.flush()).map_err(failed("written", needed))
    }

    fn commit_inner(self, needed: u64) -> Result<(), Problem> {
        let Self { target, partial } = self;
        partial.as_file().sync_all().map_err(failed("synced to disk", needed))?;
        let file = partial.persist(&target).map_err(|error| failed("renamed", needed)(error.error))?;
        drop(file);
        sync_folder(folder_of(&target)).map_err(failed("synced to disk", needed))
    }
}

/// Replaces `path` by what `content` writes. `needed` is its length, for the message if the disk is
/// full.
pub(crate) fn replace(
    path: &Path,
    needed: u64,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Problem> {
    let replacement = Replacement::begin_inner(path)?;
    // Dropping it on an early return removes the hidden file.
    replacement.write_with(needed, content)?;
    replacement.commit_inner(needed)
}

/// What failed, with the bytes that are needed if the disk is full.
fn failed(doing: &'static str, needed: u64) -> impl Fn(io::Error) -> Problem {
    move |source| match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Problem::DiskFull { needed },
        _ => Problem::Io { doing, source },
    }
}

fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes the rename durable.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Removes the files of killed writers. Failures do not matter.
fn remove_stale(folder: &Path, prefix: &OsString) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        if name.starts_with(prefix.as_encoded_bytes())
            && name.ends_with(PARTIAL.as_bytes())
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_full_disk_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("last.pt");
        replace(&path, 3, |out| out.write_all(b"old")).unwrap();
        let problem = replace(&path, 5000, |out| {
            out.write_all(&[1; 4000])?;
            Err(io::ErrorKind::StorageFull.into())
        })
        .unwrap_err();
        assert!(matches!(problem, Problem::DiskFull { needed: 5000 }), "{problem}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["last.pt"]);
    }

    #[test]
    fn files_of_killed_writers_are_removed_and_those_of_running_ones_kept() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".last.pt.dead.partial"), "x").unwrap();
        let living = File::create(folder.path().join(".last.pt.living.partial")).unwrap();
        living.lock().unwrap();
        fs::write(folder.path().join(".best.pt.other.partial"), "x").unwrap();
        replace(&folder.path().join("last.pt"), 3, |out| out.write_all(b"new")).unwrap();
        assert_eq!(names(folder.path()), [".best.pt.other.partial", ".last.pt.living.partial", "last.pt"]);
    }

    #[test]
    fn a_content_that_another_writes_is_read_before_it_has_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("best.onnx");
        let dropped = Replacement::begin(&path).unwrap();
        fs::write(dropped.path(), "bad").unwrap();
        drop(dropped);
        assert!(names(folder.path()).is_empty());
        let replacement = Replacement::begin(&path).unwrap();
        replacement.write(b"good").unwrap();
        assert_eq!(fs::read(replacement.path()).unwrap(), b"good");
        assert!(!path.exists());
        replacement.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"good");
        assert_eq!(names(folder.path()), ["best.onnx"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.pt"), folder.path().join("link.pt"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        replace(&link, 3, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert!(link.is_symlink());
    }
}

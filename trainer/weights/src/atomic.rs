//! Replaces a file in one step: the new content goes to a hidden file in the same folder, reaches
//! the disk, and takes the name by a rename. Whenever the process or the machine stops, the name
//! leads to the whole old file or the whole new one. A writer that was killed leaves its hidden
//! file; the next writer of the same name removes it, knowing by a lock that nobody uses it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::error::Problem;

/// The ending of unfinished files.
const PARTIAL: &str = ".partial";

/// Writes `path` anew with what `content` writes. `needed` is its length, for the message when
/// the disk is full.
pub(crate) fn replace(
    path: &Path,
    needed: u64,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Problem> {
    let failed = |doing| {
        move |source: io::Error| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Problem::DiskFull { needed },
            _ => Problem::Io { doing, source },
        }
    };
    // A link stays a link: the file that it leads to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name = target.file_name().ok_or(Problem::NotAFile)?;
    let folder = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".");
    remove_stale(folder, &prefix);

    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(PARTIAL);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As any new file, less what the user's umask takes away.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let partial = builder.tempfile_in(folder).map_err(failed("created"))?;
    // A file system without locks keeps the stale files, and nothing else is lost.
    let _ = partial.as_file().try_lock();
    // From here on, every early return removes the hidden file.
    let mut out = BufWriter::with_capacity(1 << 20, partial.as_file());
    content(&mut out).and_then(|()| out.flush()).map_err(failed("written"))?;
    drop(out);
    partial.as_file().sync_all().map_err(failed("written to the disk"))?;
    let file = partial.persist(&target).map_err(|error| failed("put in place")(error.error))?;
    drop(file);
    sync_folder(folder).map_err(failed("put in place"))
}

/// Makes the rename itself durable.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Removes what killed writers left. Whatever goes wrong here is not worth an error.
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
    fn what_a_killed_writer_left_is_removed_and_what_a_living_one_writes_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".last.pt.dead.partial"), "x").unwrap();
        let living = File::create(folder.path().join(".last.pt.living.partial")).unwrap();
        living.lock().unwrap();
        fs::write(folder.path().join(".best.pt.other.partial"), "x").unwrap();
        replace(&folder.path().join("last.pt"), 3, |out| out.write_all(b"new")).unwrap();
        assert_eq!(names(folder.path()), [".best.pt.other.partial", ".last.pt.living.partial", "last.pt"]);
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

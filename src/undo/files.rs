//! Reading and replacing small files. A file is replaced by one rename, keeps its permissions, and stays a
//! link if it is one.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use fs_err as fs;

use crate::fetch::Sha256;

/// The bytes of a file; `None` if there is none.
pub(super) fn read(file: &Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::read(file) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The SHA-256 of a file, in hexadecimal.
pub(super) fn sha256_of(file: &Path) -> io::Result<String> {
    let (mut file, mut sum) = (std::fs::File::open(file)?, Sha256::new());
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex::encode(sum.finish())),
            count => sum.update(&buffer[..count]),
        }
    }
}

// Invariant: a file that exists under its final name is complete.
/// Replaces a file atomically and keeps its permissions.
pub(crate) fn write_file(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let real = if file.is_symlink() { fs::canonicalize(file)? } else { file.to_owned() };
    let folder = real.parent().unwrap_or(Path::new("."));
    let name = real.file_name().unwrap_or_default().to_string_lossy();
    // The same name each time, so that what a killed process left is replaced by the next attempt. The journal is
    // locked meanwhile.
    let new = folder.join(format!(".{name}.yolo-new"));
    let _ = std::fs::remove_file(&new);
    let written = write_new(&new, bytes, &real).and_then(|()| rename(&new, &real));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written
}

fn write_new(new: &Path, bytes: &[u8], real: &Path) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(new)?;
    file.write_all(bytes)?;
    match fs::metadata(real) {
        Ok(data) => fs::set_permissions(new, data.permissions())?,
        Err(_) => readable_by_all(new)?,
    }
    file.sync_all()
}

/// Renames, with retries on Windows, where a virus scanner may hold a new file open for a moment.
fn rename(new: &Path, real: &Path) -> io::Result<()> {
    let mut pause = Duration::from_millis(10);
    loop {
        match std::fs::rename(new, real) {
            Err(error) => {
                let is_busy = cfg!(windows) && error.kind() == io::ErrorKind::PermissionDenied;
                if !is_busy || pause > Duration::from_secs(2) {
                    return Err(error);
                }
                std::thread::sleep(pause);
                pause *= 2;
            }
            renamed => return renamed,
        }
    }
}

/// New settings files get the usual permissions, whatever the umask of this process is.
#[cfg(unix)]
fn readable_by_all(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable_by_all(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Whether this user may write a file, or create it in its folder.
#[cfg(unix)]
pub(crate) fn can_write(path: &Path) -> bool {
    use rustix::fs::{Access, access};
    let place = if path.exists() { Some(path) } else { path.parent() };
    place.is_some_and(|place| access(place, Access::WRITE_OK).is_ok())
}

/// Whether this user may write a file, or create it in its folder.
#[cfg(not(unix))]
pub(crate) fn can_write(path: &Path) -> bool {
    let place = if path.exists() { Some(path) } else { path.parent() };
    place.and_then(|place| place.metadata().ok()).is_some_and(|data| !data.permissions().readonly())
}

/// The permissions of a file or folder, without its kind; `None` where there are no such permissions.
#[cfg(unix)]
pub(super) fn mode_of(path: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).ok().map(|data| data.permissions().mode() & 0o7777)
}

#[cfg(not(unix))]
pub(super) fn mode_of(_: &Path) -> Option<u32> {
    None
}

/// Sets the permissions of a file or folder.
#[cfg(unix)]
pub(super) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
pub(super) fn set_mode(_: &Path, _: u32) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

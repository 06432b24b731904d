//! Writes a small file in one step.

use std::io;
use std::path::Path;

use fs_err as fs;

/// Writes the file, or replaces it.
///
/// # Errors
/// When it cannot be written. Then an earlier file is still there.
pub(crate) fn publish(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(format!(".{}.part", std::process::id()));
    // Invariant: a file that exists under its final name is complete.
    let result = fs::write(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, path));
    result.map_err(|error| {
        // The error of the removal would hide the error of the write.
        let _ = fs::remove_file(&unfinished);
        // The user knows no temporary files.
        let reason = error.to_string().rsplit_once(": ").map(|(_, reason)| reason.to_owned());
        io::Error::new(error.kind(), format!("{}: {}", path.display(), reason.unwrap_or_default()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_complete_or_absent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        publish(&path, b"one").unwrap();
        publish(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let error = publish(&folder.path().join("none/a.txt"), b"").unwrap_err().to_string();
        assert!(error.ends_with("none/a.txt: No such file or directory (os error 2)"), "{error}");
    }
}

//! `.wslconfig` on disk: found, read, and replaced by one rename, with the old file kept beside it.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use yolo_checks::wsl::config::{ConfigFile, Document};
use yolo_checks::wsl::sizing::Proposal;

use super::WslError;
use super::facts::ConfigFacts;

/// The name that WSL reads.
const NAME: &str = ".wslconfig";
/// Names under which people find it not read: Notepad adds `.txt`, and guides mix up the two files.
const MISNAMED: [&str; 5] = [".wslconfig.txt", "wslconfig", "wslconfig.txt", ".wslconf", "wsl.conf"];

/// The file in the Windows user's folder, as it is.
pub(super) fn look(profile: &Path) -> Result<ConfigFacts, WslError> {
    let path = profile.join(NAME);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(WslError::file("read", path)(error)),
    };
    let misnamed = MISNAMED.iter().map(|name| profile.join(name)).find(|path| path.is_file());
    Ok(ConfigFacts { path, bytes, misnamed })
}

/// The file that was written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) path: PathBuf,
    /// The file as it was before.
    pub(super) backup: Option<PathBuf>,
}

/// Sets these values, and leaves every other byte of the file.
pub(super) fn write(config: &ConfigFacts, values: &[Proposal]) -> Result<Written, WslError> {
    // People who keep such files elsewhere link to them: the link stays.
    let path = std::fs::canonicalize(&config.path).unwrap_or_else(|_| config.path.clone());
    let mut document = Document::parse(ConfigFile::WslConfig, config.bytes.as_deref().unwrap_or_default());
    for one in values {
        document
            .set("wsl2", one.key, &one.value)
            .map_err(|source| WslError::Edit { path: path.clone(), source })?;
    }
    let backup = match &config.bytes {
        Some(before) => {
            let backup = free_name(&config.path);
            std::fs::write(&backup, before).map_err(WslError::file("write", &backup))?;
            Some(backup)
        }
        None => None,
    };
    replace(&path, &document.bytes()).map_err(WslError::file("write", &path))?;
    Ok(Written { path: config.path.clone(), backup })
}

/// `.wslconfig.before-yolo`, or the next one that is free: the first keeps what the user wrote.
fn free_name(path: &Path) -> PathBuf {
    let name = |number: u32| {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        path.with_file_name(format!("{NAME}.before-yolo{number}"))
    };
    (1..).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(1))
}

/// Puts a file in place by one rename, so that WSL never reads half of it.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".wslconfig.new-").tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // Temporary files are private; this one is read by Windows' service as well.
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
    }
    let mut pause = Duration::from_millis(10);
    loop {
        // A virus scanner may hold a new file open for a moment.
        match file.persist(path) {
            Ok(_) => return Ok(()),
            Err(failed) => {
                let busy = failed.error.kind() == io::ErrorKind::PermissionDenied;
                if !busy || pause > Duration::from_secs(2) {
                    return Err(failed.error);
                }
                std::thread::sleep(pause);
                pause *= 2;
                file = failed.file;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(value: &str) -> Vec<Proposal> {
        vec![Proposal { key: "memory", value: value.to_owned(), now: None, why: String::new() }]
    }

    #[test]
    fn comments_spaces_and_line_ends_stay_and_the_old_file_is_kept() {
        let profile = tempfile::tempdir().unwrap();
        let before =
            "# mine\r\n[wsl2]\r\n  memory =  4GB   # half\r\n\r\n[experimental]\r\nsparseVhd=true\r\n";
        std::fs::write(profile.path().join(".wslconfig"), before).unwrap();
        for (value, backup) in [("12GB", ".wslconfig.before-yolo"), ("8GB", ".wslconfig.before-yolo-2")] {
            let was = std::fs::read_to_string(profile.path().join(".wslconfig")).unwrap();
            let written = write(&look(profile.path()).unwrap(), &memory(value)).unwrap();
            assert_eq!(written.backup.as_deref(), Some(&*profile.path().join(backup)));
            assert_eq!(std::fs::read_to_string(profile.path().join(backup)).unwrap(), was);
            let now = std::fs::read_to_string(profile.path().join(".wslconfig")).unwrap();
            assert_eq!(now, before.replace("4GB", value));
        }
        assert_eq!(std::fs::read_dir(profile.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_new_file_has_windows_line_ends_and_no_backup() {
        let profile = tempfile::tempdir().unwrap();
        let written = write(&look(profile.path()).unwrap(), &memory("8GB")).unwrap();
        assert_eq!(written.backup, None);
        assert_eq!(std::fs::read(written.path).unwrap(), b"[wsl2]\r\nmemory=8GB\r\n");
    }

    #[test]
    fn a_file_under_a_wrong_name_is_found() {
        let profile = tempfile::tempdir().unwrap();
        std::fs::write(profile.path().join(".wslconfig.txt"), "[wsl2]\n").unwrap();
        let found = look(profile.path()).unwrap();
        assert_eq!((found.bytes, found.misnamed), (None, Some(profile.path().join(".wslconfig.txt"))));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_the_file_stays_a_link() {
        let profile = tempfile::tempdir().unwrap();
        let real = profile.path().join("dotfiles");
        std::fs::write(&real, "[wsl2]\n").unwrap();
        std::os::unix::fs::symlink(&real, profile.path().join(".wslconfig")).unwrap();
        write(&look(profile.path()).unwrap(), &memory("8GB")).unwrap();
        assert!(profile.path().join(".wslconfig").is_symlink());
        assert_eq!(std::fs::read_to_string(real).unwrap(), "[wsl2]\nmemory=8GB\n");
    }
}

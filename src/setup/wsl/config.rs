//! Changing `.wslconfig` on disk: replaced by one rename, with the old file kept next to it. Also
//! what a plan tells the user about the file.

use std::path::{Path, PathBuf};

use yolo_checks::facts::WslConfig;
use yolo_checks::wsl::sizing::Proposal;

use super::error::WslError;
use super::noted::noted;
use crate::undo::{Entry, Journal, write_file};

/// The name that WSL reads.
const NAME: &str = ".wslconfig";

/// The result of [`write()`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WrittenConfig {
    /// The file.
    pub(crate) path: PathBuf,
    /// A copy of the file before the change.
    pub(crate) backup: Option<PathBuf>,
}

/// What the user should know about the file and those that were meant to be it.
pub(super) fn notes(config: &WslConfig, misnamed: &[String]) -> Vec<String> {
    let misnamed = misnamed.iter().map(|path| format!("WSL does not read {path}: the name must be {NAME}"));
    let problems = config.document.problems().into_iter().map(|found| {
        let place = found.line.map_or_else(String::new, |line| format!(" line {line}"));
        format!("{NAME}{place}: {}", found.problem)
    });
    misnamed.chain(problems).collect()
}

/// Sets these values, and leaves every other byte of the file.
pub(super) fn write(
    config: &WslConfig,
    values: &[Proposal],
    journal: &mut Journal,
) -> Result<WrittenConfig, WslError> {
    let named = PathBuf::from(&config.path);
    // The file may be a link to where the user keeps such files: the link stays.
    let path = std::fs::canonicalize(&named).unwrap_or_else(|_| named.clone());
    let before = config.is_there.then(|| config.document.bytes());
    let mut document = config.document.clone();
    for one in values {
        document
            .set("wsl2", one.key, &one.value)
            .map_err(|source| WslError::Edit { path: path.clone(), source })?;
    }
    let (new, backup) = (document.bytes(), before.as_ref().map(|_| free_name(&named)));
    let settings: Vec<String> = values.iter().map(|one| format!("{}={}", one.key, one.value)).collect();
    let what = format!("set {} in {}", settings.join(", "), path.display());
    let describe = |entry: &mut Entry| {
        entry.file(&path, Some(&new))?;
        backup.as_ref().map_or(Ok(()), |backup| entry.file(backup, before.as_deref()))
    };
    noted(journal, &what, describe, || {
        if let (Some(before), Some(backup)) = (&before, &backup) {
            std::fs::write(backup, before).map_err(WslError::file("write", backup))?;
        }
        // Invariant: WSL never reads half of a file, because it appears by one rename.
        write_file(&path, &new).map_err(WslError::file("write", &path))
    })?;
    Ok(WrittenConfig { path: named, backup })
}

/// `.wslconfig.before-yolo`, or the next free name: the first backup keeps what the user wrote.
fn free_name(path: &Path) -> PathBuf {
    let name = |number: u32| {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        path.with_file_name(format!("{NAME}.before-yolo{number}"))
    };
    (1..).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(1))
}

#[cfg(test)]
mod tests {
    use yolo_checks::Host;

    use super::*;
    use crate::dirs::YoloDirs;

    fn write(config: &WslConfig, values: &[Proposal]) -> Result<WrittenConfig, WslError> {
        let home = tempfile::tempdir().unwrap();
        super::write(config, values, &mut Journal::of(&YoloDirs::under(home.path()), "yolo setup --wsl"))
    }

    fn config_in(profile: &Path) -> WslConfig {
        Host::of_this_machine(&yolo_checks::KnownPaths::default())
            .wslconfig_in(profile.to_str().unwrap())
            .unwrap()
    }

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
            let written = write(&config_in(profile.path()), &memory(value)).unwrap();
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
        let written = write(&config_in(profile.path()), &memory("8GB")).unwrap();
        assert_eq!(written.backup, None);
        assert_eq!(std::fs::read(written.path).unwrap(), b"[wsl2]\r\nmemory=8GB\r\n");
    }

    #[test]
    fn a_file_under_a_wrong_name_is_noted() {
        let profile = tempfile::tempdir().unwrap();
        let notes = notes(&config_in(profile.path()), &["/mnt/c/Users/ada/.wslconfig.txt".to_owned()]);
        assert!(notes[0].contains(".wslconfig.txt: the name must be .wslconfig"), "{notes:?}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_the_file_stays_a_link() {
        let profile = tempfile::tempdir().unwrap();
        let real = profile.path().join("dotfiles");
        std::fs::write(&real, "[wsl2]\n").unwrap();
        std::os::unix::fs::symlink(&real, profile.path().join(".wslconfig")).unwrap();
        write(&config_in(profile.path()), &memory("8GB")).unwrap();
        assert!(profile.path().join(".wslconfig").is_symlink());
        assert_eq!(std::fs::read_to_string(real).unwrap(), "[wsl2]\nmemory=8GB\n");
    }
}

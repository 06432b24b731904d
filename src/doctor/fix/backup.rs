//! The backup: one folder per repair, with the original files and a script that restores them. It is
//! created when the first change needs it, before that change is made.
//!
//! Invariant: the script undoes the changes in reverse order, so that a folder that was unlocked first
//! is locked again last, after everything in it is restored.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use fs_err as fs;

use super::shell;
use crate::dirs::YoloDirs;

/// The backup for one repair.
#[derive(Debug)]
pub(super) struct Backup {
    folder: PathBuf,
    /// The undo commands, in the order of the changes.
    commands: Vec<String>,
    saved: usize,
}

impl Backup {
    /// An empty backup.
    pub(super) fn of(dirs: &YoloDirs) -> Self {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let name = format!("{seconds}-{}", std::process::id());
        Self { folder: dirs.config().join("backups").join(name), commands: Vec::new(), saved: 0 }
    }

    /// Saves a file as it is now, or records that it does not exist.
    pub(super) fn save(&mut self, file: &Path) -> std::io::Result<()> {
        if !file.exists() {
            return self.add_undo(&shell::remove(file));
        }
        self.saved += 1;
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let copy = self.folder.join(format!("{}-{name}", self.saved));
        fs::create_dir_all(&self.folder)?;
        fs::copy(file, &copy)?;
        self.add_undo(&shell::copy(&copy, file))
    }

    /// Adds an undo command to the script. It runs before those of earlier changes.
    pub(super) fn add_undo(&mut self, command: &str) -> std::io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let lines = std::iter::once(command).chain(self.commands.iter().rev().map(String::as_str));
        let script = shell::HEAD.to_owned() + &lines.map(shell::line).collect::<String>();
        // The rename keeps the old script intact until the new one is complete.
        let mut script_file = tempfile::NamedTempFile::new_in(&self.folder)?;
        script_file.write_all(script.as_bytes())?;
        script_file.persist(self.path()).map_err(|error| error.error)?;
        self.commands.push(command.to_owned());
        Ok(())
    }

    fn path(&self) -> PathBuf {
        self.folder.join(shell::SCRIPT)
    }

    /// The undo script, if there is anything to undo.
    pub(super) fn script(&self) -> Option<PathBuf> {
        (!self.commands.is_empty()).then(|| self.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_files_can_be_restored() {
        let home = tempfile::tempdir().unwrap();
        let mut backup = Backup::of(&YoloDirs::under(home.path()));
        assert_eq!(backup.script(), None);
        let (old, new) = (home.path().join("it's old"), home.path().join("new"));
        fs::write(&old, "before").unwrap();
        backup.save(&old).unwrap();
        backup.save(&new).unwrap();
        fs::write(&old, "after").unwrap();
        fs::write(&new, "made").unwrap();
        assert!(shell::run(&backup.script().unwrap()));
        assert_eq!(fs::read_to_string(&old).unwrap(), "before");
        assert!(!new.exists());
    }

    #[test]
    fn changes_are_undone_in_reverse_order() {
        let home = tempfile::tempdir().unwrap();
        let mut backup = Backup::of(&YoloDirs::under(home.path()));
        for command in ["echo first", "echo second", "echo third"] {
            backup.add_undo(command).unwrap();
        }
        let script = fs::read_to_string(backup.script().unwrap()).unwrap();
        let echoes: Vec<&str> = script.lines().filter(|line| line.starts_with("echo ")).collect();
        assert_eq!(echoes, ["echo third", "echo second", "echo first"]);
    }
}

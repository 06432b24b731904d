//! The way back: one folder a repair, with the files as they were and a script that puts them back.
//! It is made when the first change needs it, and written before that change is made. The way back
//! is the way there reversed: a folder that was unlocked first is locked again last, when all that
//! was changed in it is as it was.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use fs_err as fs;

use super::shell;
use crate::dirs::YoloDirs;

/// The backup of one repair.
#[derive(Debug)]
pub(super) struct Backup {
    folder: PathBuf,
    /// In the order of the changes.
    commands: Vec<String>,
    kept: usize,
}

impl Backup {
    /// A backup that nothing is in yet.
    pub(super) fn of(dirs: &YoloDirs) -> Self {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let name = format!("{seconds}-{}", std::process::id());
        Self { folder: dirs.config().join("backups").join(name), commands: Vec::new(), kept: 0 }
    }

    /// Keeps a file as it is now, or that there was none.
    pub(super) fn keep(&mut self, file: &Path) -> std::io::Result<()> {
        if !file.exists() {
            return self.way_back(&shell::remove(file));
        }
        self.kept += 1;
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let copy = self.folder.join(format!("{}-{name}", self.kept));
        fs::create_dir_all(&self.folder)?;
        fs::copy(file, &copy)?;
        self.way_back(&shell::copy(&copy, file))
    }

    /// Adds a command to the script: it runs before those of the changes made so far.
    pub(super) fn way_back(&mut self, command: &str) -> std::io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let lines = std::iter::once(command).chain(self.commands.iter().rev().map(String::as_str));
        let script = shell::HEAD.to_owned() + &lines.map(shell::line).collect::<String>();
        // What is there already stays until the new script stands whole.
        let mut new = tempfile::NamedTempFile::new_in(&self.folder)?;
        new.write_all(script.as_bytes())?;
        new.persist(self.path()).map_err(|error| error.error)?;
        self.commands.push(command.to_owned());
        Ok(())
    }

    fn path(&self) -> PathBuf {
        self.folder.join(shell::SCRIPT)
    }

    /// The script, if there is a way back.
    pub(super) fn script(&self) -> Option<PathBuf> {
        (!self.commands.is_empty()).then(|| self.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_can_be_put_back() {
        let home = tempfile::tempdir().unwrap();
        let mut backup = Backup::of(&YoloDirs::under(home.path()));
        assert_eq!(backup.script(), None);
        let (old, new) = (home.path().join("it's old"), home.path().join("new"));
        fs::write(&old, "before").unwrap();
        backup.keep(&old).unwrap();
        backup.keep(&new).unwrap();
        fs::write(&old, "after").unwrap();
        fs::write(&new, "made").unwrap();
        assert!(shell::run(&backup.script().unwrap()));
        assert_eq!(fs::read_to_string(&old).unwrap(), "before");
        assert!(!new.exists());
    }

    #[test]
    fn the_way_back_is_the_way_there_reversed() {
        let home = tempfile::tempdir().unwrap();
        let mut backup = Backup::of(&YoloDirs::under(home.path()));
        for command in ["echo first", "echo second", "echo third"] {
            backup.way_back(command).unwrap();
        }
        let script = fs::read_to_string(backup.script().unwrap()).unwrap();
        let echoes: Vec<&str> = script.lines().filter(|line| line.starts_with("echo ")).collect();
        assert_eq!(echoes, ["echo third", "echo second", "echo first"]);
    }
}

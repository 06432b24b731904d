//! The way back: one folder a repair, with the files as they were and a script that puts them back.
//! It is made when the first change needs it, and written before that change is made.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use fs_err as fs;

use super::shell;
use crate::places::Places;

/// The backup of one repair.
#[derive(Debug)]
pub(super) struct Backup {
    folder: PathBuf,
    made: bool,
    kept: usize,
}

impl Backup {
    /// A backup that nothing is in yet.
    pub(super) fn of(places: &Places) -> Self {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let name = format!("{seconds}-{}", std::process::id());
        Self { folder: places.config().join("backups").join(name), made: false, kept: 0 }
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

    /// Adds a line to the script.
    pub(super) fn way_back(&mut self, command: &str) -> std::io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let mut script = fs::OpenOptions::new().create(true).append(true).open(self.path())?;
        if !self.made {
            script.write_all(shell::HEAD.as_bytes())?;
        }
        self.made = true;
        script.write_all(shell::line(command).as_bytes())
    }

    fn path(&self) -> PathBuf {
        self.folder.join(shell::SCRIPT)
    }

    /// The script, if there is a way back.
    pub(super) fn script(&self) -> Option<PathBuf> {
        self.made.then(|| self.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_can_be_put_back() {
        let home = tempfile::tempdir().unwrap();
        let mut backup = Backup::of(&Places::under(home.path()));
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
}

//! Writing the journal: each change is noted before it is made, with copies of the files that it replaces.
//! The notes are in the settings folder, `backups/NUMBER/`, together with the script that undoes the changes
//! of this run.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use fs_err as fs;

use super::files;
use super::listing::{FOLDER, Listing};
use super::record::{self, Record, State, Step, VERSION};
use super::script;
use crate::dirs::YoloDirs;
use crate::fetch::{FolderLock, Silent};

/// The journal of one run of `yolo`.
#[derive(Debug)]
pub(crate) struct Journal {
    folder: PathBuf,
    command: String,
    /// What this run has changed, for the script.
    records: Vec<Record>,
}

/// A change that is being noted or made.
#[derive(Debug)]
pub(crate) struct Entry {
    folder: PathBuf,
    record: Record,
    /// Downloads that were there before.
    existed: Vec<PathBuf>,
    /// Keeps `yolo undo` away from a change that is quickly made.
    _lock: Option<FolderLock>,
}

/// The folder of the journal.
pub(super) fn folder(dirs: &YoloDirs) -> PathBuf {
    dirs.config().join(FOLDER)
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// What the user typed, as far as the journal says it: `yolo setup`.
pub(crate) fn command_of_this_process() -> String {
    let command = std::env::args_os().skip(1).find(|argument| !argument.to_string_lossy().starts_with('-'));
    format!("yolo {}", command.unwrap_or_default().to_string_lossy()).trim_end().to_owned()
}

impl Journal {
    /// The journal of this installation. Nothing is written yet.
    pub(crate) fn of(dirs: &YoloDirs, command: impl Into<String>) -> Self {
        Self { folder: folder(dirs), command: command.into(), records: Vec::new() }
    }

    // Invariant: a fix writes a backup and an undo script before it changes a file.
    /// Notes a change that is about to be made. `describe` adds how it is undone.
    pub(crate) fn begin(
        &mut self,
        what: impl Into<String>,
        describe: impl FnOnce(&mut Entry) -> io::Result<()>,
    ) -> io::Result<Entry> {
        fs::create_dir_all(&self.folder)?;
        let lock = FolderLock::acquire(&self.folder, &Silent).map_err(io::Error::other)?;
        self.note(what.into(), Some(lock), describe)
    }

    /// Notes a change that takes long, such as a download: `yolo undo` works meanwhile.
    pub(crate) fn begin_long(
        &mut self,
        what: impl Into<String>,
        describe: impl FnOnce(&mut Entry) -> io::Result<()>,
    ) -> io::Result<Entry> {
        self.note(what.into(), None, describe)
    }

    fn note(
        &mut self,
        what: String,
        lock: Option<FolderLock>,
        describe: impl FnOnce(&mut Entry) -> io::Result<()>,
    ) -> io::Result<Entry> {
        let (number, folder) = new_folder(&self.folder)?;
        let record = Record {
            version: VERSION,
            number,
            at: now(),
            command: self.command.clone(),
            what,
            state: State::Begun,
            steps: Vec::new(),
            stays: None,
            place: None,
            by_hand: None,
            undoes: None,
        };
        let mut entry = Entry { folder, record, existed: Vec::new(), _lock: lock };
        let noted = describe(&mut entry).and_then(|()| entry.write());
        let noted = noted.and_then(|()| self.write_script(&entry.record));
        match noted {
            Ok(()) => Ok(entry),
            Err(error) => {
                let _ = fs::remove_dir_all(&entry.folder);
                Err(error)
            }
        }
    }

    /// Notes that the change was made.
    pub(crate) fn made(&mut self, mut entry: Entry) -> io::Result<u64> {
        for step in &mut entry.record.steps {
            if let Step::Download { path, sha256 } = step
                && path.is_file()
            {
                *sha256 = Some(files::sha256_of(path)?);
            }
        }
        entry.record.state = State::Made;
        entry.write()?;
        if !entry.existed.is_empty() {
            self.forget_replaced(&entry.record);
        }
        let number = entry.record.number;
        self.records.push(entry.record);
        Ok(number)
    }

    /// Removes the records of older installations of the same files. A trainer may be built a hundred times.
    fn forget_replaced(&self, newest: &Record) {
        let is_download = |step: &Step| matches!(step, Step::Download { .. });
        let paths = |record: &Record| -> Vec<PathBuf> { record.paths().map(Path::to_owned).collect() };
        for older in Listing::read_folder(&self.folder).records {
            let is_same = older.number < newest.number && paths(&older) == paths(newest);
            if is_same && older.steps.iter().all(is_download) {
                // If this fails, the list says that a later change installed it again.
                let _ = fs::remove_dir_all(self.folder_of(&older));
            }
        }
    }

    /// Notes that the change failed. The note stays only if something was changed all the same.
    pub(crate) fn failed(&mut self, mut entry: Entry) {
        // What an older change installed is still there, or is no longer what it was.
        let existed =
            |step: &Step| step.path().is_some_and(|path| entry.existed.iter().any(|one| one == path));
        entry.record.steps.retain(|step| !(matches!(step, Step::Download { .. }) && existed(step)));
        if super::outlook::is_unmade(&entry.record, &entry.folder) {
            let _ = fs::remove_dir_all(&entry.folder);
            if let [.., last] = self.records.as_slice() {
                let last = last.clone();
                // The script would otherwise undo what was not done, which is harmless.
                let _ = self.write_script(&last);
            }
        } else {
            self.records.push(entry.record);
        }
    }

    /// Notes how a change ended.
    pub(crate) fn end(&mut self, entry: Entry, succeeded: bool) -> io::Result<()> {
        if succeeded {
            self.made(entry).map(drop)
        } else {
            self.failed(entry);
            Ok(())
        }
    }

    /// Where the notes are.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The numbers of the changes that this run has made and that can be undone, the last one first.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let with_steps = self.records.iter().rev().filter(|record| !record.steps.is_empty());
        with_steps.map(|record| record.number).collect()
    }

    /// The script that undoes what this run has changed, if there is anything to undo.
    pub(crate) fn script(&self) -> Option<PathBuf> {
        let first = self.records.first()?;
        (!self.numbers().is_empty()).then(|| self.folder_of(first).join(script::SCRIPT))
    }

    fn folder_of(&self, record: &Record) -> PathBuf {
        self.folder.join(record.number.to_string())
    }

    /// Rewrites the script in the folder of the first record, so that it undoes this change as well.
    fn write_script(&self, newest: &Record) -> io::Result<()> {
        let first = self.records.first().unwrap_or(newest);
        let is_newest = |record: &&Record| record.number != newest.number;
        let records: Vec<&Record> = self.records.iter().filter(is_newest).chain([newest]).collect();
        let text = script::text(records.into_iter(), |record| self.folder_of(record));
        publish(&self.folder_of(first).join(script::SCRIPT), text.as_bytes())
    }
}

impl Entry {
    /// Saves a file as it is now, or notes that it does not exist, and what will be written to it; `None`
    /// if it will be removed.
    pub(crate) fn file(&mut self, path: &Path, after: Option<&[u8]>) -> io::Result<()> {
        let index = self.record.steps.len();
        let keep = |name: String, bytes: &[u8]| publish(&self.folder.join(&name), bytes).map(|()| name);
        let own_name = path.file_name().unwrap_or_default().to_string_lossy();
        let before = match files::read(path)? {
            Some(bytes) => Some(keep(format!("before-{index}-{own_name}"), &bytes)?),
            None => None,
        };
        let after = match after {
            Some(bytes) => Some(keep(format!("after-{index}-{own_name}"), bytes)?),
            None => None,
        };
        self.step(Step::File { path: path.to_owned(), before, after });
        Ok(())
    }

    /// Adds a step of undoing the change.
    pub(crate) fn step(&mut self, step: Step) {
        if let Step::Download { path, .. } = &step
            && path.symlink_metadata().is_ok()
        {
            self.existed.push(path.clone());
        }
        self.record.steps.push(step);
    }

    /// Says why the change, or a part of it, stays, and what a person can type instead.
    pub(crate) fn stays(&mut self, why: impl Into<String>, by_hand: Option<String>) {
        self.record.stays = Some(why.into());
        self.record.by_hand = by_hand;
    }

    /// Says where it is, if no step does.
    pub(crate) fn place(&mut self, path: &Path) {
        self.record.place = Some(path.to_owned());
    }

    /// The number of the change.
    pub(super) fn number(&self) -> u64 {
        self.record.number
    }

    /// Says which change this one undoes.
    pub(super) fn undoes(&mut self, number: u64) {
        self.record.undoes = Some(number);
    }

    fn write(&self) -> io::Result<()> {
        write_record(&self.folder, &self.record)
    }
}

/// Writes a record into its folder.
pub(super) fn write_record(folder: &Path, record: &Record) -> io::Result<()> {
    publish(&folder.join(record::FILE), &serde_json::to_vec_pretty(record)?)
}

/// Creates the folder of the next record. Another process may do the same at this moment.
fn new_folder(journal: &Path) -> io::Result<(u64, PathBuf)> {
    fs::create_dir_all(journal)?;
    let entries = fs::read_dir(journal)?.flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
    let mut number = numbers.max().unwrap_or(0);
    loop {
        number += 1;
        let folder = journal.join(number.to_string());
        match std::fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map(|()| (number, folder)),
        }
    }
}

/// Writes a file of the journal. The rename keeps the old one intact until the new one is complete.
fn publish(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(bytes)?;
    new.as_file().sync_all()?;
    new.persist(file).map(drop).map_err(|error| error.error)
}

//! Undoing changes. Each step looks at the disk first and does nothing where nothing is left to do, so
//! that an interrupted undo is finished by the next one. Where files are restored, that is itself a change
//! in the journal, which can be undone.

use std::io;
use std::path::Path;

use fs_err as fs;

use super::error::UndoError;
use super::files;
use super::journal::{self, Entry, Journal, write_record};
use super::listing::Listing;
use super::outlook::{Found, Outlook, find_in, saved};
use super::profiles;
use super::record::{Record, State, Step};
use crate::dirs::YoloDirs;
use crate::fetch::{FetchError, FolderLock, Progress};

/// What only other modules can do.
pub(crate) trait Hands {
    /// Removes the Linux program from a distribution; false if the distribution is gone. The error is why not, and what
    /// to do.
    fn remove_linux_program(&self, distribution: &str) -> Result<bool, (String, Option<String>)>;
}

/// One undo, which keeps others waiting.
pub(crate) struct Undo<'a> {
    dirs: &'a YoloDirs,
    hands: &'a dyn Hands,
    progress: &'a dyn Progress,
    force: bool,
    _lock: FolderLock,
}

/// What was undone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Undone {
    /// What was done, one sentence each.
    pub(crate) done: Vec<String>,
    /// The bytes that were freed.
    pub(crate) freed: u64,
    /// The change that undoes this one.
    pub(crate) redo: Option<u64>,
    /// What remains.
    pub(crate) stays: Option<String>,
}

impl<'a> Undo<'a> {
    /// Waits until no other process undoes anything or makes a quick change.
    pub(crate) fn begin(
        dirs: &'a YoloDirs,
        hands: &'a dyn Hands,
        progress: &'a dyn Progress,
        force: bool,
    ) -> Result<Self, UndoError> {
        let lock = FolderLock::acquire(&journal::folder(dirs), progress)?;
        Ok(Self { dirs, hands, progress, force, _lock: lock })
    }

    /// Undoes a change.
    pub(crate) fn undo(&self, number: u64) -> Result<Undone, UndoError> {
        let listing = Listing::read(self.dirs);
        let record = listing.record(number)?;
        let refused =
            |why: &str, hint: Option<String>| Err(UndoError::Refused { number, why: why.to_owned(), hint });
        let frees = match listing.outlook(record, self.dirs) {
            Outlook::Possible { frees, .. } => frees,
            // An undo that was interrupted right before its end.
            Outlook::Gone | Outlook::NotMade => 0,
            Outlook::Undone => return refused("it has already been undone", None),
            Outlook::Stays { why } => return refused(&why, record.by_hand.clone().map(by_hand)),
            Outlook::Blocked { can_force: true, .. } if self.force => 0,
            Outlook::Blocked { why, hint, .. } => return refused(&why, hint),
        };
        let folder = listing.folder_of(number);
        let entry = self.note(&listing, record, &folder)?;
        let steps = record.steps.iter();
        let done: Result<Vec<String>, UndoError> =
            steps.filter_map(|step| self.step(record, step, &folder).transpose()).collect();
        match (done, entry) {
            (Ok(done), entry) => {
                let redo = self.finish(entry, number)?;
                Ok(Undone { done, freed: frees, redo, stays: record.stays.clone() })
            }
            (Err(error), entry) => {
                if let Some(Noted::Now(mut journal, entry)) = entry {
                    journal.failed(*entry);
                }
                Err(error)
            }
        }
    }

    /// Notes the undo as a change, if it can itself be undone, with a copy of what it replaces.
    fn note(&self, listing: &Listing, record: &Record, folder: &Path) -> Result<Option<Noted>, UndoError> {
        let number = record.number;
        let is_of_this = |other: &&Record| other.undoes == Some(number) && other.state == State::Begun;
        if let Some(begun) = listing.records.iter().find(is_of_this) {
            return Ok(Some(Noted::Before(begun.number)));
        }
        if !record.can_be_redone() {
            return Ok(None);
        }
        let mut journal = Journal::of(self.dirs, "yolo undo");
        let describe = |entry: &mut Entry| {
            entry.undoes(number);
            // In the reverse order of what is done now.
            for step in record.steps.iter().rev() {
                match step {
                    Step::File { path, .. } => {
                        let after = self.without(record, step, folder)?;
                        if files::read(path)? != after {
                            entry.file(path, after.as_deref())?;
                        }
                    }
                    Step::Permissions { path, before, after } => {
                        let (before, after) = (*after, *before);
                        entry.step(Step::Permissions { path: path.clone(), before, after });
                    }
                    Step::Ldconfig => {}
                    _ => {}
                }
            }
            if record.steps.contains(&Step::Ldconfig) {
                entry.step(Step::Ldconfig);
            }
            Ok(())
        };
        // The lock of the journal is held already.
        let entry = journal
            .begin_long(format!("undid change {number}: {}", record.what), describe)
            .map_err(UndoError::disk(number, "write a copy in", &listing.folder))?;
        Ok(Some(Noted::Now(journal, Box::new(entry))))
    }

    /// The bytes of a file without a change; `None` if there is then no file.
    fn without(&self, record: &Record, step: &Step, folder: &Path) -> io::Result<Option<Vec<u8>>> {
        let Step::File { before, .. } = step else { return Ok(None) };
        Ok(match find_in(record, step, folder, self.dirs) {
            Found::Merged(bytes) | Found::Extended(bytes) => Some(bytes),
            Found::Lines(rest) => rest,
            _ => saved(folder, before.as_deref())?,
        })
    }

    /// Takes one step, and says what was done.
    fn step(&self, record: &Record, step: &Step, folder: &Path) -> Result<Option<String>, UndoError> {
        let number = record.number;
        if find_in(record, step, folder, self.dirs) == Found::Before {
            return Ok(None);
        }
        let done = match step {
            Step::File { path, .. } => {
                let without =
                    self.without(record, step, folder).map_err(UndoError::disk(number, "read", folder))?;
                match without {
                    Some(bytes) => {
                        if let Some(parent) = path.parent() {
                            fs::create_dir_all(parent).map_err(UndoError::disk(number, "create", parent))?;
                        }
                        files::write_file(path, &bytes).map_err(UndoError::disk(number, "write", path))?;
                        format!("restored {}", path.display())
                    }
                    None => {
                        std::fs::remove_file(path).map_err(UndoError::disk(number, "remove", path))?;
                        let advice = if *path == self.dirs.variables() {
                            profiles::advice(path)
                        } else {
                            String::new()
                        };
                        format!("removed {}{advice}", path.display())
                    }
                }
            }
            Step::Download { path, .. } => {
                self.remove(number, path)?;
                format!("removed {}", path.display())
            }
            Step::Folder { path } => match std::fs::remove_dir(path) {
                Ok(()) => format!("removed the empty folder {}", path.display()),
                // Something was put there at this moment.
                Err(_) => return Ok(None),
            },
            Step::Permissions { path, before, .. } => {
                files::set_mode(path, *before).map_err(UndoError::disk(number, "change", path))?;
                format!("set the permissions of {} to {before:o}", path.display())
            }
            Step::Ldconfig => {
                // It warns about links of the driver, which is harmless.
                let run = std::process::Command::new("ldconfig").output();
                run.map_err(UndoError::disk(number, "run", Path::new("ldconfig")))?;
                "ran ldconfig".to_owned()
            }
            Step::LinuxProgram { distribution } => {
                let removed = self.hands.remove_linux_program(distribution);
                match removed.map_err(|(why, hint)| UndoError::Refused { number, why, hint })? {
                    true => format!("removed /opt/yolo from the distribution {distribution}"),
                    false => format!("nothing to remove: the distribution {distribution} is gone"),
                }
            }
        };
        Ok(Some(done))
    }

    /// Removes a download. A folder is first renamed away, so that it is never there in part.
    fn remove(&self, number: u64, path: &Path) -> Result<(), UndoError> {
        if !path.is_dir() {
            return std::fs::remove_file(path).map_err(UndoError::disk(number, "remove", path));
        }
        let folder = path.parent().unwrap_or(path);
        // Waits for a setup that is working in it.
        let _lock = FolderLock::acquire(folder, self.progress)?;
        let aside = folder.join(format!(".incoming-removed-{}", std::process::id()));
        std::fs::rename(path, &aside).map_err(UndoError::disk(number, "remove", path))?;
        fs::remove_dir_all(&aside).map_err(FetchError::disk("remove", &aside))?;
        Ok(())
    }

    /// Notes that an undo was done, and what it means for the change that it undoes.
    fn finish(&self, noted: Option<Noted>, number: u64) -> Result<Option<u64>, UndoError> {
        let undo = match noted {
            None => {
                self.set(number, State::Undone)?;
                return Ok(None);
            }
            Some(Noted::Before(undo)) => undo,
            Some(Noted::Now(_, entry)) => entry.number(),
        };
        self.set(undo, State::Made)?;
        Ok(Some(undo))
    }

    /// Notes the state of a change. What it undoes has the opposite state, and is written first: while a record
    /// that undoes another one is only begun, the next undo finishes it.
    fn set(&self, number: u64, state: State) -> Result<(), UndoError> {
        let listing = Listing::read(self.dirs);
        let mut chain = Vec::new();
        let (mut next, mut state) = (Some(number), state);
        while let Some(record) = next.and_then(|number| listing.record(number).ok()) {
            chain.push(Record { state, ..record.clone() });
            // Each record undoes an older one, so that this ends.
            next = record.undoes.filter(|older| *older < record.number);
            state = if state == State::Made { State::Undone } else { State::Made };
        }
        for record in chain.iter().rev() {
            let folder = listing.folder_of(record.number);
            write_record(&folder, record).map_err(UndoError::disk(
                record.number,
                "write the record in",
                &folder,
            ))?;
        }
        Ok(())
    }
}

/// The note of an undo.
enum Noted {
    /// An earlier undo, which was interrupted, has written it.
    Before(u64),
    Now(Journal, Box<Entry>),
}

/// The hint for what a person can type.
fn by_hand(command: String) -> String {
    format!("by hand: {command}")
}

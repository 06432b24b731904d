//! Reading the journal: all records, those that are damaged, and what versions of `yolo` left that had no
//! journal yet.

use std::path::{Path, PathBuf};

use fs_err as fs;

use super::error::UndoError;
use super::outlook::{Outlook, outlook};
use super::record::{self, Record, State, VERSION};
use super::script::SCRIPT;
use crate::dirs::YoloDirs;

/// The folder of the journal, in the settings folder.
pub(super) const FOLDER: &str = "backups";

/// All changes of an installation.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The folder of the journal.
    pub(super) folder: PathBuf,
    /// The records, the newest first.
    pub(crate) records: Vec<Record>,
    /// Records that cannot be read.
    pub(crate) damaged: Vec<Damaged>,
    /// Backups of versions without a journal.
    pub(crate) older: Vec<OlderBackup>,
}

/// A record that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damaged {
    /// The file.
    pub(crate) file: PathBuf,
    /// Why.
    pub(crate) why: String,
}

/// The backup of a version without a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OlderBackup {
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// The script that undoes what it did.
    pub(crate) script: PathBuf,
}

impl Listing {
    /// Reads the journal. A journal that does not exist is empty.
    pub(crate) fn read(dirs: &YoloDirs) -> Self {
        Self::read_folder(&dirs.config().join(FOLDER))
    }

    /// Reads the journal in this folder.
    pub(super) fn read_folder(folder: &Path) -> Self {
        let folder = folder.to_owned();
        let mut listing =
            Self { records: Vec::new(), damaged: Vec::new(), older: Vec::new(), folder: folder.clone() };
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                if error.kind() != std::io::ErrorKind::NotFound {
                    listing.damaged.push(Damaged { file: folder, why: error.to_string() });
                }
                return listing;
            }
        };
        for place in entries.flatten().map(|entry| entry.path()).filter(|place| place.is_dir()) {
            let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let script = place.join(SCRIPT);
            match name.parse::<u64>() {
                Ok(number) => match read_record(&place, number) {
                    Ok(Some(record)) => listing.records.push(record),
                    Ok(None) => {}
                    Err(why) => listing.damaged.push(Damaged { file: place.join(record::FILE), why }),
                },
                Err(_) if script.is_file() => listing.older.push(OlderBackup { folder: place, script }),
                Err(_) => {}
            }
        }
        listing.records.sort_by_key(|record| std::cmp::Reverse(record.number));
        listing.finish_undos();
        listing.damaged.sort_by(|one, other| one.file.cmp(&other.file));
        listing.older.sort_by(|one, other| other.folder.cmp(&one.folder));
        listing
    }

    /// An undo whose process was killed right before its own note was the last thing to write is done.
    fn finish_undos(&mut self) {
        let undone: Vec<u64> = self
            .records
            .iter()
            .filter(|record| record.state == State::Undone)
            .map(|record| record.number)
            .collect();
        for record in &mut self.records {
            if record.state == State::Begun && record.undoes.is_some_and(|number| undone.contains(&number)) {
                record.state = State::Made;
            }
        }
    }

    /// The record with a number.
    pub(crate) fn record(&self, number: u64) -> Result<&Record, UndoError> {
        self.records.iter().find(|record| record.number == number).ok_or_else(|| UndoError::NoSuchChange {
            number,
            there: match (self.records.last(), self.records.first()) {
                (Some(first), Some(last)) if first.number == last.number => {
                    format!("the only one is {}", first.number)
                }
                (Some(first), Some(last)) => format!("there are {} to {}", first.number, last.number),
                _ => "yolo has recorded no changes yet".to_owned(),
            },
        })
    }

    /// Whether a record can be undone.
    pub(crate) fn outlook(&self, record: &Record, dirs: &YoloDirs) -> Outlook {
        outlook(record, &self.folder, &self.records, dirs)
    }

    /// The last change that can be undone. What undoes another one is only undone by its number.
    pub(crate) fn last(&self, dirs: &YoloDirs) -> Result<u64, UndoError> {
        // An interrupted undo is finished first, before an older change is touched.
        let interrupted = self.records.iter().filter(|record| record.state == State::Begun);
        if let Some(number) = interrupted.filter_map(|record| record.undoes).max() {
            return Ok(number);
        }
        let own = self.records.iter().filter(|record| record.undoes.is_none());
        let can = |outlook: Outlook| matches!(outlook, Outlook::Possible { .. } | Outlook::Blocked { .. });
        let mut candidates = own.filter(|record| can(self.outlook(record, dirs)));
        candidates.next().map(|record| record.number).ok_or(UndoError::Nothing)
    }

    /// Whether undoing this change was interrupted.
    pub(crate) fn is_interrupted(&self, number: u64) -> bool {
        self.records.iter().any(|record| record.undoes == Some(number) && record.state == State::Begun)
    }

    /// The folder of a record.
    pub(super) fn folder_of(&self, number: u64) -> PathBuf {
        self.folder.join(number.to_string())
    }
}

/// Reads a record. `None` if the process that was about to write it has ended, or not yet written it.
fn read_record(folder: &Path, number: u64) -> Result<Option<Record>, String> {
    let file = folder.join(record::FILE);
    let bytes = match fs::read(&file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let value: serde_json::Value =
        serde_json::from_slice(&bytes).map_err(|error| format!("it is not JSON: {error}"))?;
    match value.get("version").and_then(serde_json::Value::as_u64) {
        Some(version) if version > u64::from(VERSION) => {
            return Err(format!("a newer yolo wrote it (version {version}); use that one"));
        }
        Some(_) => {}
        None => return Err("it has no version".to_owned()),
    }
    let record: Record =
        serde_json::from_value(value).map_err(|error| format!("it is not a record: {error}"))?;
    if record.number != number {
        return Err(format!("it is the record of change {}", record.number));
    }
    let has_names_only = record.steps.iter().all(|step| match step {
        record::Step::File { before, after, .. } => {
            before.iter().chain(after).all(|name| !name.contains(['/', '\\']) && name != "..")
        }
        _ => true,
    });
    if has_names_only { Ok(Some(record)) } else { Err("it names copies outside its folder".to_owned()) }
}

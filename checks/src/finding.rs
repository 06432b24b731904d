//! The result of a check: data that the command prints as text or as JSON. Text that is the same
//! on every host is in the catalogue; a check adds what it saw on this host.

use serde::Serialize;

use crate::catalogue::{Area, CHECK_FAILED, entry};
use crate::change::Change;
use crate::status::Status;

/// What to do about a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// What to do, as a phrase.
    pub text: String,
    /// What can be done as well, but only by those who administer the machine. The text is what the user can do. When
    /// a finding is shown, this has become a part of the text, or has been left out.
    #[serde(skip)]
    pub for_machine: Option<String>,
    /// The exact commands for this host, if any.
    pub commands: Vec<String>,
    /// Whether `--fix` can apply it, which means that there are changes.
    pub fixable: bool,
    /// What `--fix` changes on this host.
    pub changes: Vec<Change>,
    /// How `--fix` is undone.
    pub undo: Option<String>,
}

/// One answer of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable name, such as `gpu.driver-missing`.
    pub id: &'static str,
    /// The group it is shown in.
    pub area: Area,
    /// How serious it is.
    pub status: Status,
    /// One line, with the values seen on this host.
    pub title: String,
    /// Why it matters.
    pub cause: Option<String>,
    /// The values, names and paths that led to it.
    pub evidence: Vec<String>,
    /// What to do.
    pub remedy: Option<Remedy>,
    /// The ids of known failures that it detects.
    pub detects: &'static [&'static str],
    /// Its link in the reference page.
    pub link: String,
}

impl Finding {
    /// A finding with the status and text of its catalogue row, and a title that says what was seen.
    ///
    /// Invariant: every id that a check uses is in the catalogue; `tests/catalogue.rs` reads the ids
    /// from the source. Should one be missing all the same, the finding reports a failed check.
    pub(crate) fn new(id: &'static str, title: impl Into<String>) -> Self {
        let entry = entry(id).unwrap_or(&CHECK_FAILED);
        Self {
            id: entry.id,
            area: entry.area,
            status: entry.status,
            title: title.into(),
            cause: Some(entry.cause.to_owned()),
            evidence: Vec::new(),
            remedy: entry.remedy.map(|text| Remedy {
                text: text.to_owned(),
                for_machine: None,
                commands: Vec::new(),
                fixable: false,
                changes: Vec::new(),
                undo: None,
            }),
            detects: entry.detects,
            link: entry.link(),
        }
    }

    /// Nothing is wrong with what this id is about.
    pub(crate) fn ok(id: &'static str, title: impl Into<String>) -> Self {
        Self::new(id, title).status(Status::Ok)
    }

    /// A fact that this id needs is missing.
    pub(crate) fn skipped(id: &'static str, why: &crate::facts::Unknown) -> Self {
        Self::new(id, format!("skipped, because {why}")).status(Status::Skipped)
    }

    /// Replaces the status of the catalogue, if it differs on this host or for this run.
    #[must_use]
    pub(crate) fn status(mut self, status: Status) -> Self {
        self.status = status;
        self.trimmed()
    }

    /// A finding that is ok or skipped has no cause and no remedy.
    fn trimmed(mut self) -> Self {
        if matches!(self.status, Status::Ok | Status::Skipped) {
            self.cause = None;
            self.remedy = None;
        }
        self
    }

    /// Adds evidence.
    #[must_use]
    pub(crate) fn seen(mut self, evidence: impl Into<String>) -> Self {
        self.evidence.push(evidence.into());
        self
    }

    /// Adds an exact command to the remedy.
    #[must_use]
    pub(crate) fn command(mut self, command: impl Into<String>) -> Self {
        if let Some(remedy) = &mut self.remedy {
            remedy.commands.push(command.into());
        }
        self
    }

    /// Adds a change that `--fix` can make on this host.
    ///
    /// Invariant: the catalogue says what `--fix` does about this id and how that is undone; without
    /// it, nothing is offered. A test compares the rows that promise a fix with the findings that
    /// offer one.
    #[must_use]
    pub(crate) fn change(mut self, change: Change) -> Self {
        let fix = entry(self.id).and_then(|entry| entry.fix);
        if let (Some(remedy), Some(fix)) = (&mut self.remedy, fix) {
            remedy.fixable = true;
            remedy.undo = Some(fix.undo.to_owned());
            remedy.changes.push(change);
        }
        self
    }

    /// Replaces the text of the remedy with one for this host.
    #[must_use]
    pub(crate) fn remedy(mut self, text: impl Into<String>) -> Self {
        if let Some(remedy) = &mut self.remedy {
            remedy.text = text.into();
            remedy.for_machine = None;
        }
        self
    }

    /// Adds what only those can do who administer the machine: its settings, its parts, its start. It follows the text
    /// on the user's own machine; elsewhere it is passed on, and the text stays as it is.
    #[must_use]
    pub(crate) fn machine_remedy(mut self, text: impl Into<String>) -> Self {
        if let Some(remedy) = &mut self.remedy {
            remedy.for_machine = Some(text.into());
        }
        self
    }

    /// Adds options of the run to the text of the remedy, one of which is meant. An option alone is no command.
    #[must_use]
    pub(crate) fn options(mut self, options: &[String]) -> Self {
        let quoted: Vec<String> = options.iter().map(|option| format!("`{option}`")).collect();
        if let (Some(remedy), false) = (&mut self.remedy, quoted.is_empty()) {
            remedy.text = format!("{}: {}", remedy.text, yolo_base::format::choice(&quoted));
        }
        self
    }

    /// Replaces the cause with one for this host.
    #[must_use]
    pub(crate) fn because(mut self, cause: impl Into<String>) -> Self {
        if self.cause.is_some() {
            self.cause = Some(cause.into());
        }
        self
    }
}

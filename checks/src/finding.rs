//! What a check found: data that the command prints as text or as JSON. The words that stay the
//! same stand in the catalogue; a check adds what it saw on this host.

use serde::Serialize;

use crate::catalogue::{Area, Entry, entry};
use crate::change::Change;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// All is well.
    Ok,
    /// Worth knowing.
    Info,
    /// A fact that the check needs is missing.
    Skipped,
    /// It will slow a run, or may stop it.
    Warning,
    /// It will stop a run.
    Error,
}

/// What to do about a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// In words.
    pub text: String,
    /// The exact commands for this host, where there are some.
    pub commands: Vec<String>,
    /// Whether `--fix` can apply it: there are changes.
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
    /// The group that it is shown in.
    pub area: Area,
    /// How much it matters.
    pub status: Status,
    /// One line, with the numbers seen.
    pub title: String,
    /// Why it matters, in words.
    pub cause: Option<String>,
    /// Numbers, names and paths that were seen.
    pub evidence: Vec<String>,
    /// What to do.
    pub remedy: Option<Remedy>,
    /// The ids of known failures that it detects.
    pub detects: &'static [&'static str],
    /// Its place in the reference page.
    pub link: String,
}

impl Finding {
    /// A finding of the catalogue, with its status there and one line that says what was seen. An
    /// id that the catalogue has not is a mistake in the check: the panic becomes that check's own
    /// result, and a test compares the ids of all checks with the catalogue.
    pub(crate) fn new(id: &'static str, title: impl Into<String>) -> Self {
        let entry: &Entry = entry(id).unwrap_or_else(|| panic!("the catalogue has no `{id}`"));
        Self {
            id,
            area: entry.area,
            status: entry.status,
            title: title.into(),
            cause: Some(entry.cause.to_owned()),
            evidence: Vec::new(),
            remedy: entry.remedy.map(|text| Remedy {
                text: text.to_owned(),
                commands: Vec::new(),
                fixable: false,
                changes: Vec::new(),
                undo: None,
            }),
            detects: entry.detects,
            link: entry.link(),
        }
    }

    /// All is well with what this id is about.
    pub(crate) fn ok(id: &'static str, title: impl Into<String>) -> Self {
        Self::new(id, title).status(Status::Ok)
    }

    /// A fact that this id needs is missing.
    pub(crate) fn skipped(id: &'static str, why: &crate::facts::Unknown) -> Self {
        Self::new(id, format!("skipped, because {why}")).status(Status::Skipped)
    }

    /// Another status than that of the catalogue, where this host or run asks for it.
    #[must_use]
    pub(crate) fn status(mut self, status: Status) -> Self {
        self.status = status;
        self.trimmed()
    }

    /// What is well, or not known, has no cause and no remedy.
    fn trimmed(mut self) -> Self {
        if matches!(self.status, Status::Ok | Status::Skipped) {
            self.cause = None;
            self.remedy = None;
        }
        self
    }

    /// Adds what was seen.
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

    /// Adds a change that `--fix` can make on this host. The row of the catalogue says in words what
    /// it does and how it is undone; a row without them is a mistake in the check, as an unknown id is.
    #[must_use]
    pub(crate) fn change(mut self, change: Change) -> Self {
        if let Some(remedy) = &mut self.remedy {
            let fix = entry(self.id).and_then(|entry| entry.fix);
            let fix =
                fix.unwrap_or_else(|| panic!("the catalogue does not say what --fix does about {}", self.id));
            remedy.fixable = true;
            remedy.undo = Some(fix.undo.to_owned());
            remedy.changes.push(change);
        }
        self
    }

    /// Says what to do in words for this host instead of those of the catalogue.
    #[must_use]
    pub(crate) fn remedy(mut self, text: impl Into<String>) -> Self {
        if let Some(remedy) = &mut self.remedy {
            remedy.text = text.into();
        }
        self
    }

    /// Says why in words for this host instead of those of the catalogue.
    #[must_use]
    pub(crate) fn because(mut self, cause: impl Into<String>) -> Self {
        if self.cause.is_some() {
            self.cause = Some(cause.into());
        }
        self
    }
}

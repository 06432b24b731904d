//! What a check found: data that the command prints as text or as JSON.

use serde::Serialize;

use crate::catalogue::Area;

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
    /// The exact commands, if there are some.
    pub commands: Vec<String>,
}

/// One answer of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable name, such as `gpu.none`.
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
}

impl Finding {
    /// A finding of this catalogue id, with its one line.
    pub(crate) fn new(id: &'static str, status: Status, title: impl Into<String>) -> Self {
        let entry = crate::catalogue::entry(id);
        Self {
            id,
            area: entry.map_or(Area::System, |entry| entry.area),
            status,
            title: title.into(),
            cause: entry.filter(|_| status >= Status::Warning).map(|entry| entry.cause.to_owned()),
            evidence: Vec::new(),
            remedy: entry
                .filter(|_| status >= Status::Warning)
                .and_then(|entry| entry.remedy)
                .map(|text| Remedy { text: text.to_owned(), commands: Vec::new() }),
        }
    }

    /// Adds what was seen.
    #[must_use]
    pub(crate) fn seen(mut self, evidence: impl Into<String>) -> Self {
        self.evidence.push(evidence.into());
        self
    }

    /// Adds a command to the remedy.
    #[must_use]
    pub(crate) fn command(mut self, command: impl Into<String>) -> Self {
        if let Some(remedy) = &mut self.remedy {
            remedy.commands.push(command.into());
        }
        self
    }
}

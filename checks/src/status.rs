//! How serious a finding is.

use serde::Serialize;

/// How serious a finding is, least serious first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Nothing is wrong.
    Ok,
    /// Worth knowing.
    Info,
    /// A fact that the check needs is missing.
    Skipped,
    /// It slows a run down, or may stop it.
    Warning,
    /// It stops a run.
    Error,
}

//! What a check is: a question, and a function that answers it from the facts of a host.

use crate::facts::{Host, Unknown};
use crate::finding::Finding;
use crate::intent::Intent;

/// The answer of a check: findings, or the missing fact because of which it is skipped.
pub type Answer = Result<Vec<Finding>, Unknown>;

/// One check.
#[derive(Debug)]
pub struct Check {
    /// What it checks, as a question that the user might ask.
    pub question: &'static str,
    /// The ids it can report; the first is used if the check is skipped.
    pub reports: &'static [&'static str],
    /// Whether its findings can stop a run, so that `yolo train` runs it first.
    pub preflight: bool,
    /// The check itself.
    pub run: fn(&Host, &Intent) -> Answer,
}

//! The result of a comparison, as data that the command prints as text or as JSON.

use serde::Serialize;

use super::findings::FindingDifference;
use crate::status::Status;

/// A comparison of machines. Lists with one item per machine are in the order of `machines`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The machines.
    pub machines: Vec<Summary>,
    /// The facts that differ, those that matter most first.
    pub differences: Vec<Difference>,
    /// Warnings and errors that not all machines have, errors first.
    pub findings: Vec<FindingDifference>,
    /// The ids of warnings and errors that all machines have.
    pub shared_findings: Vec<&'static str>,
    /// The facts that are equal.
    pub equal: Vec<Equal>,
    /// The facts that were not compared on every machine.
    pub unknown: Vec<Unread>,
}

/// What identifies a machine to the reader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Its name in the comparison.
    pub name: String,
    /// Its system, GPUs, cores and memory, as far as they are known.
    pub about: Vec<String>,
}

/// A fact that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Stable name, such as `libtorch-version`.
    pub id: &'static str,
    /// What differs, as a noun phrase.
    pub what: &'static str,
    /// `Error`: it stops a run. `Warning`: it slows a run down, or may stop it. `Info`: it does not
    /// matter.
    pub status: Status,
    /// Why it matters, or why not.
    pub why: String,
    /// What to do.
    pub remedy: Option<String>,
    /// The value of each machine; `None` if it is unknown or does not apply.
    pub values: Vec<Option<String>>,
}

/// A fact that is equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Equal {
    /// Stable name.
    pub id: &'static str,
    /// What is equal, as a noun phrase.
    pub what: &'static str,
    /// The value of the first machine.
    pub value: String,
}

/// A fact that at least one machine lacks and another one has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// Stable name.
    pub id: &'static str,
    /// What was not compared, as a noun phrase.
    pub what: &'static str,
    /// Why each machine lacks it; `None` if it does not.
    pub reasons: Vec<Option<String>>,
}

impl Comparison {
    /// How many of the differences and findings have this status.
    pub fn count(&self, status: Status) -> usize {
        let differences = self.differences.iter().map(|difference| difference.status);
        let findings = self.findings.iter().map(|finding| finding.status);
        differences.chain(findings).filter(|one| *one == status).count()
    }
}

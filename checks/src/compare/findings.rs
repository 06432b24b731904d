//! The problems that some of the machines have and others do not.

use serde::Serialize;

use super::machine::Machine;
use crate::checks::{Verdict, run_checks};
use crate::finding::Finding;
use crate::status::Status;

/// A warning or an error that not all machines have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FindingDifference {
    /// The id in the reference of findings, such as `gpu.driver-missing`.
    pub id: &'static str,
    /// The worst status on any machine: a warning or an error.
    pub status: Status,
    /// What each machine has.
    pub machines: Vec<Here>,
}

/// A finding on one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Here {
    /// Whether the machine has the problem.
    pub state: State,
    /// The title, with the values seen on this machine, if it has the problem.
    pub title: Option<String>,
}

/// Whether a machine has a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It does not.
    Absent,
    /// A fact was missing.
    Unknown,
    /// It has, as a warning.
    Warning,
    /// It has, as an error.
    Error,
}

/// The findings that differ, errors first, and the ids of those that all machines have.
pub(super) fn compare(machines: &[Machine<'_>]) -> (Vec<FindingDifference>, Vec<&'static str>) {
    let verdicts: Vec<Vec<Verdict>> =
        machines.iter().map(|machine| run_checks(machine.host, machine.intent, |_| true)).collect();
    let (mut different, mut shared) = (Vec::new(), Vec::new());
    for id in problems(&verdicts) {
        let machines: Vec<Here> = verdicts.iter().map(|verdicts| here(id, verdicts)).collect();
        if machines.iter().all(|one| one.state == machines[0].state) {
            shared.push(id);
            continue;
        }
        let has_error = machines.iter().any(|one| one.state == State::Error);
        let status = if has_error { Status::Error } else { Status::Warning };
        different.push(FindingDifference { id, status, machines });
    }
    different.sort_by_key(|finding| std::cmp::Reverse(finding.status));
    (different, shared)
}

fn is_problem(finding: &Finding) -> bool {
    finding.status >= Status::Warning
}

/// The ids of all warnings and errors, in the order of the areas. The order of the machines does not
/// matter.
fn problems(verdicts: &[Vec<Verdict>]) -> Vec<&'static str> {
    let findings = verdicts.iter().flatten().flat_map(|verdict| &verdict.findings);
    let mut problems: Vec<_> =
        findings.filter(|finding| is_problem(finding)).map(|finding| (finding.area, finding.id)).collect();
    problems.sort_unstable();
    problems.dedup();
    problems.into_iter().map(|(_, id)| id).collect()
}

fn here(id: &str, verdicts: &[Verdict]) -> Here {
    let findings = verdicts.iter().flat_map(|verdict| &verdict.findings);
    let worst = findings
        .filter(|finding| finding.id == id && is_problem(finding))
        .max_by_key(|finding| finding.status);
    if let Some(finding) = worst {
        let state = if finding.status == Status::Error { State::Error } else { State::Warning };
        return Here { state, title: Some(finding.title.clone()) };
    }
    // A check that lacks a fact is skipped under the first of its ids.
    let of_id = verdicts.iter().filter(|verdict| verdict.check.reports.contains(&id));
    let is_skipped =
        of_id.flat_map(|verdict| &verdict.findings).any(|finding| finding.status == Status::Skipped);
    Here { state: if is_skipped { State::Unknown } else { State::Absent }, title: None }
}

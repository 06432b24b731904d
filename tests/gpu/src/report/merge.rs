//! Joins reports of several short runs of one kit on one machine.

use std::path::{Path, PathBuf};

use super::files::read;
use super::types::{Outcome, Report, StageReport};
use crate::error::KitError;
use crate::stage::Stage;

/// Joins reports, the oldest first: a stage that ran in a later report replaces that of an earlier one. One that did not
/// come to its end replaces only another such.
///
/// # Errors
/// When one is not a report, or they are of different kits or machines.
pub fn merge(paths: &[PathBuf]) -> Result<Report, KitError> {
    let mut joined: Option<(&Path, Report)> = None;
    for path in paths {
        let next = read(path)?;
        joined = Some(match joined {
            None => (path, next),
            Some((first, report)) => {
                expect_alike(first, &report, path, &next)?;
                (first, join(report, next))
            }
        });
    }
    joined
        .map(|(_, report)| report)
        .ok_or_else(|| KitError::Io(std::io::Error::other("no report was given to join")))
}

fn expect_alike(first: &Path, one: &Report, second: &Path, other: &Report) -> Result<(), KitError> {
    let gpus =
        |report: &Report| -> Vec<String> { report.machine.gpus.iter().map(|gpu| gpu.name.clone()).collect() };
    let driver = |report: &Report| report.machine.driver.clone().unwrap_or_else(|| "none".to_owned());
    let differences = [
        ("the kit", one.kit.commit.clone(), other.kit.commit.clone()),
        ("the GPUs", gpus(one).join(", "), gpus(other).join(", ")),
        ("the CPU", one.machine.cpu.clone(), other.machine.cpu.clone()),
        ("the driver", driver(one), driver(other)),
        ("libtorch", one.machine.libtorch.clone(), other.machine.libtorch.clone()),
        ("rehearsal", one.rehearsal.to_string(), other.rehearsal.to_string()),
    ];
    match differences.into_iter().find(|(_, one, other)| one != other) {
        None => Ok(()),
        Some((what, one, other)) => Err(KitError::Unlike {
            first: first.to_owned(),
            second: second.to_owned(),
            why: format!("{what} differs: {one} and {other}"),
        }),
    }
}

/// Whether a stage says no more than a later one that did not come to its end.
fn says_no_more(known: &StageReport, later: &StageReport) -> bool {
    match known.outcome {
        Outcome::Skipped => true,
        Outcome::Unfinished => known.checks.len() <= later.checks.len(),
        Outcome::Passed | Outcome::Failed | Outcome::TimedOut | Outcome::NotBuilt => false,
    }
}

fn join(mut report: Report, next: Report) -> Report {
    for stage in next.stages {
        match report.stages.iter_mut().find(|known| known.stage == stage.stage) {
            Some(_) if stage.outcome == Outcome::Skipped => {}
            Some(known) if stage.outcome == Outcome::Unfinished && !says_no_more(known, &stage) => {}
            Some(known) => *known = stage,
            None => report.stages.push(stage),
        }
    }
    let place = |stage: Stage| Stage::ALL.iter().position(|&other| other == stage);
    report.stages.sort_by_key(|stage| place(stage.stage));
    report
}

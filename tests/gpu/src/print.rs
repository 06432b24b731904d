//! Everything that the kit prints: progress on stderr, the result on stdout.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is the one place that prints")]

use std::path::Path;
use std::time::Duration;

use yolo_base::format::duration;

use crate::error::KitError;
use crate::report::{Outcome, Report, StageReport};
use crate::stage::Stage;

/// A stage begins.
pub fn begin(stage: Stage, limit: Duration) {
    eprintln!("{:<8} {} … (at most {})", stage.name(), stage.proves(), duration(limit.as_secs_f64()));
}

/// A stage has ended.
pub fn end(report: &StageReport) {
    for check in report.checks.iter().filter(|check| check.outcome != Outcome::Passed) {
        eprintln!("         {}: {}: {}", check.outcome.text(), check.what, check.detail);
    }
    let why = report.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let time = duration(report.seconds);
    eprintln!("{:<8} {} after {time}{why}", report.stage.name(), report.outcome.text());
}

/// The report is written.
pub fn written(report: &Report, folder: &Path) {
    let passed = report.stages.iter().filter(|stage| stage.outcome == Outcome::Passed).count();
    println!("{passed} of {} stages passed", report.stages.len());
    println!("report: {}", folder.join("report.md").display());
    eprintln!("nothing was sent; for a bug report, attach {}", folder.join("report.json").display());
}

/// The kit stops.
pub fn error(error: &KitError) {
    eprintln!("error: {error}");
}

/// A signal ended the run.
pub fn interrupted() {
    eprintln!("interrupted: every program that the kit started was stopped");
}

/// The working folder was kept.
pub fn kept(folder: &Path) {
    eprintln!("runs and logs: {}", folder.display());
}

//! Everything that the kit prints: progress on stderr, the result on stdout.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is the one place that prints")]

use std::path::Path;
use std::time::Duration;

use yolo_base::format::duration;

use crate::error::KitError;
use crate::report::{Check, Outcome, Report, StageReport};
use crate::stage::Stage;

/// A stage begins.
pub fn begin(stage: Stage, limit: Duration, is_rehearsal: bool) {
    let what = if is_rehearsal { "rehearsal of: " } else { "" };
    eprintln!("{:<8} {what}{} (at most {})", stage.name(), stage.proves(), duration(limit.as_secs_f64()));
}

/// Something was checked.
pub fn check(check: &Check) {
    eprintln!("         {}: {}: {}", check.outcome.text(), check.what, check.detail);
}

/// A stage has ended.
pub fn end(report: &StageReport) {
    let why = report.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let time = duration(report.seconds);
    eprintln!("{:<8} {} after {time}{why}", report.stage.name(), report.outcome.text());
}

/// The report is written.
pub fn written(report: &Report, folder: &Path) {
    let count = |wanted: Outcome| report.stages.iter().filter(|stage| stage.outcome == wanted).count();
    let (not_run, unfinished) = (count(Outcome::Skipped), count(Outcome::Unfinished));
    let mut also = String::new();
    for (number, what) in [(unfinished, "not finished"), (not_run, "did not run")] {
        if number > 0 {
            also.push_str(&format!(", {number} {what}"));
        }
    }
    println!("{} of {} stages passed{also}", count(Outcome::Passed), report.stages.len() - not_run);
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    println!("report: {}", folder.join("report.md").display());
    eprintln!("nothing was sent; to send the result, send {}", folder.join("report.json").display());
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

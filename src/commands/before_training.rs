//! A measurement that one rank makes before a run, in a temporary folder: its log stays only if it failed.

use std::path::PathBuf;

use tempfile::TempDir;
use yolo_plan::RunPlan;
use yolo_plan::bench_report::Measurement;
use yolo_plan::event::Event;

use crate::error::CommandError;
use crate::launch::{self, Programs, RunEnd};
use crate::printer::{Printer, RunView};

/// How a measurement ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Measured<T> {
    /// This came out.
    Result(T),
    /// The user interrupted it.
    Interrupted {
        /// Whether the rank had to be killed.
        killed: bool,
    },
}

/// Makes the measurement of this plan, whose run folder is `folder`.
pub(super) fn measure(
    plan: &RunPlan,
    folder: TempDir,
    programs: &Programs,
    printer: &Printer,
) -> Result<Measured<Vec<Measurement>>, CommandError> {
    let result = launch(plan, programs, printer);
    if result.is_err() {
        let kept: PathBuf = folder.keep();
        printer.warning(format_args!("the log of the measurement is in {}", kept.join("logs").display()));
    }
    result
}

fn launch(
    plan: &RunPlan,
    programs: &Programs,
    printer: &Printer,
) -> Result<Measured<Vec<Measurement>>, CommandError> {
    let plan_file = plan.write()?;
    let mut view = RunView::new(printer, &plan.task, false);
    let end = launch::run(plan, &plan_file, programs, &mut |rank, event| {
        // The run says these again.
        if !matches!(event, Event::Note { .. } | Event::Warning { .. }) {
            view.show(rank, event);
        }
    });
    let measurements = view.finish().measurements;
    Ok(match end? {
        RunEnd::Finished => Measured::Result(measurements),
        RunEnd::Interrupted { killed, .. } => Measured::Interrupted { killed },
    })
}

/// The error for a measurement that this option needs and that ended without a result.
pub(super) fn no_result(option: &str) -> CommandError {
    CommandError::Failed {
        what: format!("{option}: the measurement ended without a result"),
        hint: "give the option a number; if YOLO_TRAINER is set, it must be the yolo-trainer of this release"
            .to_owned(),
    }
}

//! `yolo train --workers auto`: measures before a run how many loader threads it needs, as `yolo bench --workers
//! auto` does but for a shorter time, and writes the number into its plan. So a resumed run has the same number,
//! and nothing is measured while ranks train.

use std::path::PathBuf;

use yolo_plan::bench_report::Report;
use yolo_plan::event::Event;
use yolo_plan::run::{Task, plan_loader_threads};
use yolo_plan::{PlanError, RunPlan};

use super::log_folder;
use crate::error::CommandError;
use crate::launch::{self, Programs, RunEnd};
use crate::printer::{Printer, RunView, reason_for_workers};

/// How the measurement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measured {
    /// The plan has its number.
    Chosen,
    /// The user interrupted it.
    Interrupted {
        /// Whether the rank had to be killed.
        killed: bool,
    },
}

/// Measures how many loader threads the run needs, and says it in one line. `plan` has the most that it may have,
/// and then the number.
pub(super) fn choose(
    plan: &mut RunPlan,
    programs: &Programs,
    printer: &Printer,
) -> Result<Measured, CommandError> {
    let Task::Train(task) = &plan.task else { return Ok(Measured::Chosen) };
    if task.workers == 1 {
        printer.say("--workers auto: 1, as a run with this batch gets no more on this machine");
        return Ok(Measured::Chosen);
    }
    let folder = log_folder::create("yolo-workers-")?;
    let Some(measurement) = plan_loader_threads(plan, folder.path().to_owned()) else {
        return Ok(Measured::Chosen);
    };
    printer.say(format_args!(
        "--workers auto: measuring how many of up to {} loader threads the run needs",
        task.workers
    ));
    let report = match measure(&measurement, programs, printer) {
        Ok(Ok(report)) => report,
        Ok(Err(killed)) => return Ok(Measured::Interrupted { killed }),
        Err(error) => {
            let kept: PathBuf = folder.keep();
            printer.warning(format_args!("the log of the measurement is in {}", kept.join("logs").display()));
            return Err(error);
        }
    };
    let Some(advice) = report.and_then(|report| report.workers) else {
        return Err(CommandError::Failed {
            what: "--workers auto: the measurement ended without a result".to_owned(),
            hint:
                "give --workers a number; if YOLO_TRAINER is set, it must be the yolo-trainer of this release"
                    .to_owned(),
        });
    };
    printer.say(format_args!("--workers auto: {}, as {}", advice.count, reason_for_workers(&advice)));
    if let Task::Train(task) = &mut plan.task {
        task.workers = advice.count;
    }
    Ok(Measured::Chosen)
}

/// Makes the measurement. The inner error is an interrupt, with whether the rank was killed.
fn measure(
    plan: &RunPlan,
    programs: &Programs,
    printer: &Printer,
) -> Result<Result<Option<Report>, bool>, CommandError> {
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
        RunEnd::Finished => Ok(Report::new(plan, measurements)),
        RunEnd::Interrupted { killed, .. } => Err(killed),
    })
}

/// Why `--workers auto` is refused `where_`: each machine would need another number, and nobody could measure it
/// for ranks that do not run yet.
pub(super) fn only_on_one_machine(where_: &str) -> PlanError {
    PlanError::usage(format!(
        "--workers auto is for a run that `yolo train` starts on one machine, and has no meaning {where_}"
    ))
    .with_hint("run `yolo bench --workers auto` on each machine, and give its number to --workers there")
}

//! `yolo train --workers auto`: measures before a run how many loader threads it needs, as `yolo bench --workers
//! auto` does but for a shorter time, and writes the number into its plan. So a resumed run has the same number,
//! and nothing is measured while ranks train.

use yolo_plan::bench_report::Report;
use yolo_plan::run::{Task, plan_loader_threads};
use yolo_plan::{PlanError, RunPlan};

use super::before_training::{self, Measured};
use super::log_folder;
use crate::error::CommandError;
use crate::launch::Programs;
use crate::printer::{Printer, reason_for_workers};

/// Measures how many loader threads the run needs, and says it in one line. `plan` has the most that it may have,
/// and then the number.
pub(super) fn choose(
    plan: &mut RunPlan,
    programs: &Programs,
    printer: &Printer,
) -> Result<Measured<()>, CommandError> {
    let Task::Train(task) = &plan.task else { return Ok(Measured::Result(())) };
    if task.workers == 1 {
        printer.say("--workers auto: 1, as a run with this batch gets no more on this machine");
        return Ok(Measured::Result(()));
    }
    let folder = log_folder::create("yolo-workers-")?;
    let Some(measurement) = plan_loader_threads(plan, folder.path().to_owned()) else {
        return Ok(Measured::Result(()));
    };
    printer.say(format_args!(
        "--workers auto: measuring how many of up to {} loader threads the run needs",
        task.workers
    ));
    let measurements = match before_training::measure(&measurement, folder, programs, printer)? {
        Measured::Result(measurements) => measurements,
        Measured::Interrupted { killed } => return Ok(Measured::Interrupted { killed }),
    };
    let report = Report::new(&measurement, measurements);
    let advice = report.and_then(|report| report.workers);
    let advice = advice.ok_or_else(|| before_training::no_result("--workers auto"))?;
    printer.say(format_args!("--workers auto: {}, as {}", advice.count, reason_for_workers(&advice)));
    if let Task::Train(task) = &mut plan.task {
        task.workers = advice.count;
    }
    Ok(Measured::Result(()))
}

/// Why `--workers auto` is refused `where_`: each machine would need another number, and nobody could measure it
/// for ranks that do not run yet.
pub(super) fn only_on_one_machine(where_: &str) -> PlanError {
    PlanError::usage(format!(
        "--workers auto is for a run that `yolo train` starts on one machine, and has no meaning {where_}"
    ))
    .with_hint("run `yolo bench --workers auto` on each machine, and give its number to --workers there")
}

//! `yolo val`.

use yolo_plan::run::plan_val;

use super::run::Run;
use crate::cli::ValArgs;
use crate::error::CommandError;
use crate::printer::{Printer, RunEvents};

/// Evaluates weights on a data set and returns the exit status.
pub(super) fn val(args: &ValArgs, offline: bool, printer: &Printer) -> Result<u8, CommandError> {
    let options = &args.options;
    Run {
        exist_ok: options.exist_ok,
        measure_batch: false,
        measure_workers: false,
        plan: &|context| plan_val(options, context),
        preflight: &|_, _| Ok(()),
        measured: &|_, _| (),
        events: args.json.then(|| RunEvents::new(printer)),
        layout: None,
        graphics: None,
    }
    .execute(offline, printer)
}

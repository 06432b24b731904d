//! `yolo val`.

use yolo_plan::options::ValOptions;
use yolo_plan::run::plan_val;

use super::data_to_linux::data_in_linux;
use super::run::{Run, not_started};
use crate::cli::ValArgs;
use crate::error::CommandError;
use crate::printer::{Printer, RunEvents};

/// Evaluates weights on a data set and returns the exit status.
pub(super) fn val(args: &ValArgs, offline: bool, printer: &Printer) -> Result<u8, CommandError> {
    let events = args.json.then(|| RunEvents::new(printer));
    let data = data_in_linux(args.data_to_linux, args.options.data.as_deref(), printer);
    let data = data.map_err(|error| not_started(events.as_ref(), error))?;
    let options = &ValOptions { data, ..args.options.clone() };
    Run {
        exist_ok: options.exist_ok,
        measure_batch: false,
        measure_workers: false,
        plan: &|context| plan_val(options, context),
        preflight: &|_, _| Ok(()),
        measured: &|_, _| (),
        events,
        layout: None,
        graphics: None,
    }
    .execute(offline, printer)
}

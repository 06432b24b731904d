//! `yolo export`.

use yolo_plan::run::plan_export;

use super::run::Run;
use crate::cli::ExportArgs;
use crate::error::CommandError;
use crate::printer::{Printer, RunEvents};

/// Writes weights in other formats and returns the exit status.
pub(super) fn export(args: &ExportArgs, offline: bool, printer: &Printer) -> Result<u8, CommandError> {
    Run {
        exist_ok: false,
        measure_batch: false,
        measure_workers: false,
        plan: &|context| plan_export(&args.options, context),
        preflight: &|_, _| Ok(()),
        measured: &|_, _| (),
        events: args.json.then(|| RunEvents::new(printer)),
        layout: None,
        graphics: None,
    }
    .execute(offline, printer)
}

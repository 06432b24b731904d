//! `yolo val`.

use yolo_plan::options::ValOptions;
use yolo_plan::run::plan_val;

use super::run::Run;
use crate::error::CommandError;
use crate::printer::Printer;

/// Measures weights on a data set and returns the exit status.
pub(super) fn val(options: &ValOptions, offline: bool, printer: &Printer) -> Result<u8, CommandError> {
    Run {
        data: options.data.as_deref(),
        exist_ok: options.exist_ok,
        plan: &|context| plan_val(options, context),
        preflight: &|_, _| Ok(()),
    }
    .execute(offline, printer)
}

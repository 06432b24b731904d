//! `yolo train`.

use yolo_plan::run::plan_train;

use super::run::Run;
use crate::cli::TrainArgs;
use crate::doctor;
use crate::error::CommandError;
use crate::printer::Printer;

/// Trains a detector and returns the exit status.
pub(super) fn train(args: &TrainArgs, offline: bool, printer: &Printer) -> Result<u8, CommandError> {
    let options = &args.options;
    Run {
        exist_ok: options.exist_ok,
        plan: &|context| plan_train(options, context),
        preflight: &|host, plan| match args.no_preflight {
            true => Ok(()),
            false => doctor::preflight(host, options, plan, printer),
        },
        measured: &|_, _| (),
    }
    .execute(offline, printer)
}

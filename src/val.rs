//! `yolo val`: measures weights on a data set and prints the table.

use std::process::ExitCode;

use yolo_plan::run::{Planned, plan_val};

use crate::cli::ValArgs;
use crate::error::CommandError;
use crate::launch::{self, Outcome};
use crate::places::Places;
use crate::printer::{LiveView, Printer};
use crate::train::make_builtin;
use crate::{host, run_folder};

/// Validates as the words say.
pub(crate) fn val(args: &ValArgs, printer: &Printer) -> Result<ExitCode, CommandError> {
    let places = Places::from_env()?;
    let plan_places = host::plan_places(&places)?;
    let options = args.options();
    make_builtin(options.data.as_deref(), &plan_places, printer)?;
    let Planned { mut plan, warnings, notes } = plan_val(&options, &host::inventory(&places), &plan_places)?;
    warnings.iter().for_each(|warning| printer.warning(warning));
    notes.iter().for_each(|note| printer.say(note));
    plan.ranks.threads = host::threads_of_user().unwrap_or(plan.ranks.threads);
    let programs = host::programs(&places, printer)?;
    let plan_file = run_folder::create(&mut plan, options.exist_ok)?;

    let mut view = LiveView::new(printer);
    let programs = launch::Programs { trainer: &programs.trainer, libtorch: &programs.libtorch };
    let ended = launch::run(&plan, &plan_file, &programs, &mut |rank, event| view.show(rank, event));
    let files = view.finish();
    match ended? {
        Outcome::Finished => {
            files.iter().for_each(|file| printer.say(format_args!("{}: {}", file.what, file.path.display())));
            Ok(ExitCode::SUCCESS)
        }
        Outcome::Interrupted { .. } => Ok(ExitCode::from(130)),
    }
}

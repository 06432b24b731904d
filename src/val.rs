//! `yolo val`: measures weights on a data set and prints the table.

use std::process::ExitCode;

use yolo_plan::run::{self, Planned, plan_val};

use crate::cli::ValArgs;
use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::launch::{self, Outcome};
use crate::printer::{LiveView, Printer};
use crate::train::make_builtin;
use crate::{host, needs, run_folder};

/// Validates as the words say.
pub(crate) fn val(args: &ValArgs, offline: bool, printer: &Printer) -> Result<ExitCode, CommandError> {
    let places = YoloDirs::from_env()?;
    let plan_places = host::plan_places(&places)?;
    let mut options = args.options();
    make_builtin(options.data.as_deref(), &plan_places, printer)?;
    let inventory = host::inventory(&host::this_host(&places), &places);
    let planned = match plan_val(&options, &inventory, &plan_places) {
        Ok(planned) => planned,
        // What the plan lacks may be what setup can fetch; anything else is as wrong as before.
        Err(error) => {
            let weights = run::val_weights_words(&options);
            let needs = needs::Needs { data: run::data_word(options.data.as_deref()), weights: &weights };
            let Some(weights) = needs.fetch(&places, &plan_places, offline, printer)? else {
                return Err(error.into());
            };
            options.weights = weights;
            plan_val(&options, &inventory, &plan_places)?
        }
    };
    let Planned { mut plan, warnings, notes } = planned;
    warnings.iter().for_each(|warning| printer.warning(warning));
    notes.iter().for_each(|note| printer.say(note));
    plan.ranks.threads = host::threads_of_user().unwrap_or(plan.ranks.threads);
    let programs = host::programs(&places, offline, printer)?;
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

//! `yolo train`: plan, fetch what is missing, start the ranks, show the run, and say where its
//! files are.

use std::path::Path;
use std::process::ExitCode;

use yolo_plan::run::{self, Planned, plan_resume, plan_train};

use crate::cli::TrainArgs;
use crate::dirs::YoloDirs;
use crate::doctor;
use crate::error::CommandError;
use crate::launch::{self, Outcome};
use crate::printer::{LiveView, Printer};
use crate::{host, needs, run_folder};

/// Exit code of a run that the user interrupted, as shells report SIGINT.
const INTERRUPTED: u8 = 130;

/// Trains as the words say.
pub(crate) fn train(args: &TrainArgs, offline: bool, printer: &Printer) -> Result<ExitCode, CommandError> {
    let places = YoloDirs::from_env()?;
    let plan_places = host::plan_places(&places)?;
    let mut options = args.options();
    let this_host = host::this_host(&places);
    let planned = match &args.resume {
        Some(path) => plan_resume(Some(Path::new(path)), &plan_places)?,
        None => {
            make_builtin(options.data.as_deref(), &plan_places, printer)?;
            let inventory = host::inventory(&this_host, &places);
            match plan_train(&options, &inventory, &plan_places) {
                Ok(planned) => planned,
                // What the plan lacks may be what setup can fetch; anything else is as wrong as before.
                Err(error) => {
                    let needs = needs::Needs {
                        data: run::data_word(options.data.as_deref()),
                        weights: &[run::weights_word(&options).to_owned()],
                    };
                    let Some(weights) = needs.fetch(&places, &plan_places, offline, printer)? else {
                        return Err(error.into());
                    };
                    options.weights = weights.into_iter().next();
                    plan_train(&options, &inventory, &plan_places)?
                }
            }
        }
    };
    let Planned { mut plan, warnings, notes } = planned;
    warnings.iter().for_each(|warning| printer.warning(warning));
    notes.iter().for_each(|note| printer.say(note));
    plan.ranks.threads = host::threads_of_user().unwrap_or(plan.ranks.threads);
    if !args.no_preflight {
        doctor::preflight(&this_host, &options, args.resume.as_deref(), &plan, printer)?;
    }
    // Everything is in place before the run folder is made: a failed download leaves no empty run.
    let programs = host::programs(&places, offline, printer)?;
    let plan_file = if args.resume.is_some() {
        run_folder::write(&plan)?
    } else {
        run_folder::create(&mut plan, options.exist_ok)?
    };
    printer.say(format_args!("run folder {}", plan.run_dir.display()));

    let mut view = LiveView::new(printer);
    let programs = launch::Programs { trainer: &programs.trainer, libtorch: &programs.libtorch };
    let ended = launch::run(&plan, &plan_file, &programs, &mut |rank, event| view.show(rank, event));
    let files = view.finish();
    match ended? {
        Outcome::Finished => {
            for file in files {
                printer.result(format_args!("{}: {}", file.what, file.path.display()));
            }
            Ok(ExitCode::SUCCESS)
        }
        Outcome::Interrupted { resume_from: Some(path) } => {
            printer.say(format_args!(
                "interrupted; the state is saved. Continue with\n  yolo train --resume {}",
                path.display()
            ));
            Ok(ExitCode::from(INTERRUPTED))
        }
        Outcome::Interrupted { resume_from: None } => {
            printer.say("interrupted before there was anything to save");
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

/// Generates the data set if the options name a built-in one, and says so when it is new.
pub(crate) fn make_builtin(
    data: Option<&str>,
    places: &yolo_plan::dataset::Places,
    printer: &Printer,
) -> Result<(), CommandError> {
    if let Some(folder) = crate::setup::data::make_builtin(data, places)? {
        let name = data.unwrap_or_default();
        printer.say(format_args!("generated the data set `{name}` in {}", folder.display()));
    }
    Ok(())
}

//! Getting what planning found missing: fetches data sets, weights and pictures, and generates the
//! built-in data set.

use std::collections::BTreeSet;

use yolo_plan::run::{Need, PlanContext};

use super::interrupt::Interrupt;
use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::printer::{Printer, SetupView, setup_text as show};
use crate::setup::data::make_builtin;
use crate::setup::sources::fetch_source;
use crate::setup::weights::weights_target;
use crate::setup::{
    Chosen, Context, DataSetError, SetupError, SetupPlan, SetupRequest, StepOutcome, Variant,
};

/// Gets what a plan needs, and enters it into the context of the next plan. Of weights that would have the same name, it
/// gets the first.
pub(super) fn get(
    needs: &[Need],
    plan_context: &mut PlanContext,
    dirs: &YoloDirs,
    offline: bool,
    printer: &Printer,
) -> Result<(), CommandError> {
    let view = SetupView::new(printer);
    let context = Context::new(dirs, offline, &view);
    let mut request = SetupRequest::default();
    let mut targets = BTreeSet::new();
    for need in needs {
        match need {
            Need::Builtin(name) => {
                if let Some(folder) = make_builtin(Some(name), &plan_context.places, &context)? {
                    printer.say(format_args!("created the built-in data set in {}", folder.display()));
                }
                plan_context.generated = true;
            }
            Need::Data(argument) => request.data.push(argument.clone()),
            Need::Weights(argument) => {
                let (path, installed) = weights_target(dirs, argument)?;
                if installed.is_none() {
                    if !targets.insert(path.clone()) {
                        // Once the other one is installed, this one gets another name.
                        continue;
                    }
                    request.weights.push(argument.clone());
                }
                plan_context.fetched.insert(argument.clone(), path);
            }
            Need::Source(address) => match fetch_source(&context, address) {
                Ok(path) => {
                    plan_context.fetched.insert(address.clone(), path);
                }
                // What is wrong here is wrong for every address.
                Err(SetupError::Fetch(error)) if error.is_offline() => {
                    return Err(CommandError::Failed {
                        what: error.to_string(),
                        hint: "run without --offline (and unset YOLO_OFFLINE), or download the file elsewhere and \
                               give its path"
                            .to_owned(),
                    });
                }
                Err(SetupError::Fetch(error)) if error.is_disk() => {
                    return Err(SetupError::Fetch(error).into());
                }
                // As with files, a picture that is not there costs only itself.
                Err(error) => {
                    plan_context.unavailable.insert(address.clone(), error.to_string());
                }
            },
        }
    }
    if request.data.is_empty() && request.weights.is_empty() {
        return Ok(());
    }
    let _interrupt = Interrupt::with_message("run the same command again to continue the download", printer);
    // Nothing but data and weights is requested, so the variant is never used.
    let plan = SetupPlan::make(&request, &context, &plan_context.places, || Chosen::named(Variant::Cpu))?;
    let steps: Vec<_> = plan.steps().cloned().collect();
    view.clear();
    printer.say(show::plan(&steps, &plan.disks()?));
    plan.check_room()?;
    let result = plan.run(&context, &plan_context.places, &mut Vec::new(), |step, outcome: &StepOutcome| {
        view.above(|| printer.say(show::outcome(step, outcome)));
    });
    match result {
        // The plan judges the data set by the run's own options: --single-cls allows what setup refuses.
        Ok(()) | Err(SetupError::DataSet(DataSetError::Untrainable { .. })) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

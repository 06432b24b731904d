//! Fetching what planning found missing: data sets and weights.

use std::collections::BTreeMap;
use std::path::PathBuf;

use yolo_plan::dataset;
use yolo_plan::run::Need;

use super::interrupt::Interrupt;
use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::printer::{Printer, SetupView, setup_text as show};
use crate::setup::weights::{WeightsStatus, weights_status};
use crate::setup::{Chosen, Context, SetupError, SetupPlan, SetupRequest, StepOutcome, Variant};

/// Fetches what a plan needs and returns the files of its weights by their arguments.
pub(super) fn fetch(
    needs: &[Need],
    dirs: &YoloDirs,
    plan_places: &dataset::Places,
    offline: bool,
    printer: &Printer,
) -> Result<BTreeMap<String, PathBuf>, CommandError> {
    let view = SetupView::new(printer);
    let context = Context::new(dirs, offline, &view);
    let mut request = SetupRequest::default();
    let mut weights = BTreeMap::new();
    for need in needs {
        match need {
            Need::Data(argument) => request.data.push(argument.clone()),
            Need::Weights(argument) => {
                let path = match weights_status(&context, argument)? {
                    WeightsStatus::Installed(weights) => weights.path,
                    WeightsStatus::Missing(pending) => {
                        request.weights.push(argument.clone());
                        pending.target().to_owned()
                    }
                };
                weights.insert(argument.clone(), path);
            }
        }
    }
    if request.data.is_empty() && request.weights.is_empty() {
        return Ok(weights);
    }
    let _interrupt = Interrupt::with_message("run the same command again to continue the download", printer);
    // Only data and weights are wanted, so that the variant is never used.
    let plan = SetupPlan::make(&request, &context, plan_places, || Chosen::named(Variant::Cpu))?;
    let steps: Vec<_> = plan.steps().cloned().collect();
    view.clear();
    printer.say(show::plan(&steps, &plan.disks()?));
    plan.check_room()?;
    let result = plan.run(&context, plan_places, &mut Vec::new(), |step, outcome: &StepOutcome| {
        view.above(|| printer.say(show::outcome(step, outcome)));
    });
    match result {
        // The plan judges the data set by the run's own options: --single-cls allows what setup refuses.
        Ok(()) | Err(SetupError::Untrainable { .. }) => Ok(weights),
        Err(error) => Err(error.into()),
    }
}

//! What a run needs and setup can fetch: the data set and the weights that its options name.

use std::path::Path;

use yolo_plan::dataset;

use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::interrupt::Interrupt;
use crate::printer::{Printer, SetupView, setup as show};
use crate::setup::data::{DataStatus, data_status};
use crate::setup::weights::{WeightsName, WeightsStatus, weights_status};
use crate::setup::{Context, SetupError, SetupPlan, SetupRequest, StepOutcome};

/// Words of the options.
pub(crate) struct Needs<'a> {
    /// Of `--data`, or its default.
    pub(crate) data: &'a str,
    /// Of `--weights`, or its default; an empty word needs nothing.
    pub(crate) weights: &'a [String],
}

impl Needs<'_> {
    /// Fetches what is missing, and gives the words of `--weights` as paths. `None` when setup can
    /// do nothing about what is missing.
    pub(crate) fn fetch(
        &self,
        places: &YoloDirs,
        plan_places: &dataset::Places,
        offline: bool,
        printer: &Printer,
    ) -> Result<Option<Vec<String>>, CommandError> {
        let view = SetupView::new(printer);
        let context = Context::new(places, offline, &view);
        let mut wish = SetupRequest::default();
        let lacks_data = match data_status(&context, self.data, plan_places) {
            Ok(status) => matches!(status, DataStatus::Missing(_)),
            // A wrong yaml is the plan's to tell; a server that does not answer is ours.
            Err(error) if error.is_about_fetching() => return Err(error.into()),
            Err(_) => return Ok(None),
        };
        if lacks_data {
            wish.data.push(self.data.to_owned());
        }
        let mut words = self.weights.to_vec();
        for word in &mut words {
            let here = plan_places.working_dir.join(&*word);
            if word.is_empty() || here.exists() || matches!(WeightsName::parse(word), WeightsName::Path(_)) {
                continue;
            }
            match weights_status(&context, word)? {
                WeightsStatus::Installed(weights) => *word = shown(&weights.path),
                WeightsStatus::Missing(pending) => {
                    wish.weights.push(word.clone());
                    *word = shown(pending.target());
                }
            }
        }
        if wish.data.is_empty() && wish.weights.is_empty() {
            return Ok((words != self.weights).then_some(words));
        }
        let _interrupt = Interrupt::says("what came is kept: run the same command again to go on", printer);
        let nothing_to_choose = || crate::setup::Chosen::named(crate::setup::Variant::Cpu);
        let plan = SetupPlan::make(&wish, &context, plan_places, nothing_to_choose)?;
        let steps: Vec<_> = plan.steps().cloned().collect();
        view.clear();
        printer.say(show::plan(&steps, &plan.disks()?));
        plan.check_room()?;
        let result = plan.run(&context, plan_places, &mut Vec::new(), |step, outcome: &StepOutcome| {
            view.above(|| printer.say(show::outcome(step, outcome)));
        });
        match result {
            // The run judges by its own options: with --single-cls every class will do.
            Ok(()) | Err(SetupError::Untrainable { .. }) => Ok(Some(words)),
            Err(error) => Err(error.into()),
        }
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

//! What the splits of a run have. It is compared with what they had when the run that is resumed was saved, and sent to
//! the evolution of which the run is a generation.

use yolo_data::scan::Scan;
use yolo_plan::dataset::{SplitSummary, changed_splits};
use yolo_plan::event::Event;
use yolo_plan::run::TrainTask;

use crate::rank::context::Context;
use crate::training::summary;

/// What a split has. Warns if it is not what it was `before`.
pub(super) fn of_split(
    context: &Context,
    task: &TrainTask,
    before: &[SplitSummary],
    (split, scan): (&str, &Scan),
) -> SplitSummary {
    let now = summary(split, &scan.samples);
    if let Some(change) = changed_splits(std::slice::from_ref(&now), before) {
        context.reporter.warning(format!(
            "the data set has changed since the run was saved: {change}. The run continues with what is there; to train \
             all epochs on the same images, restore the data set and resume again, or start a new run"
        ));
    }
    if task.evolve {
        context.reporter.send(&Event::Split(now.clone()));
    }
    now
}

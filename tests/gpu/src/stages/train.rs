//! One batch on the device and on the CPU, and then a training from the start to its last validation, to
//! the accuracy that the README states.

use yolo_base::format::{bytes, count};

use super::tests::check_tests;
use crate::results;
use crate::stage_run::{StageRun, Stop};

/// The run folder.
const NAME: &str = "train";
/// The crate and the name of the test that compares one batch.
const ONE_BATCH: (&str, &str) = ("yolo-trainer", "loss_and_gradients_agree");

pub(super) fn run(stage: &mut StageRun<'_>) -> Result<(), Stop> {
    let session = stage.session;
    check_tests(stage, ONE_BATCH.0, ONE_BATCH.1, "loss and gradients of one batch are those of the CPU")?;
    let accuracy = session.scale.accuracy.clone();
    let mut invocation = session.train(NAME, &accuracy.options);
    if !accuracy.options.contains("--data") {
        invocation = session.data_and_weights(invocation);
    }
    let ended = stage.run(invocation)?;
    stage.require_success("the training ends by itself", &ended)?;
    let rows = results::of_run(&session.run_folder(NAME));
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
        return Err(Stop::Failed("results.csv has no rows".to_owned()));
    };
    // The objectness loss rises at first, when the first boxes are found.
    let (before, after) = (first.losses[0], last.losses[0]);
    stage.check("the box loss falls", after < before, format!("{before:.4} to {after:.4}"));
    let (map50, map50_95) = results::best(&rows);
    if accuracy.map50 > 0.0 {
        let wanted = format!("mAP50 {map50:.3} of at least {}", accuracy.map50);
        stage.check("mAP50 reaches its bar", map50 >= accuracy.map50, wanted);
        let wanted = format!("mAP50-95 {map50_95:.3} of at least {}", accuracy.map50_95);
        stage.check("mAP50-95 reaches its bar", map50_95 >= accuracy.map50_95, wanted);
    }
    for file in ["best.pt", "last.pt"] {
        let size =
            std::fs::metadata(session.run_folder(NAME).join("weights").join(file)).map(|data| data.len());
        let found = size.as_ref().map_or_else(ToString::to_string, |&size| bytes(size));
        stage.check(format!("{file} is written"), size.is_ok(), found);
    }
    stage.figure("mAP50", map50, "");
    stage.figure("mAP50-95", map50_95, "");
    stage.figure(count(rows.len(), "epoch"), ended.seconds, "s");
    Ok(())
}

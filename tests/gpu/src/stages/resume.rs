//! A run that is killed or interrupted in the middle, continued to the result of a run that nothing
//! disturbed.

use yolo_base::format::count;

use super::interrupted::{Cause, interrupt, resume};
use crate::results;
use crate::stage_run::{StageRun, Stop};

/// How far the losses of two equal runs may differ on a GPU, which adds in any order. On the CPU equal
/// runs are equal.
const TOLERANCE_OF_A_GPU: f64 = 0.05;

pub(super) fn run(stage: &mut StageRun<'_>) -> Result<(), Stop> {
    let session = stage.session;
    let options = session.scale.of("--imgsz 320 --batch 16 --epochs 8", "--imgsz 64 --batch 16 --epochs 3");
    let in_the_middle = session.scale.of(3, 1);
    let invocation = |name: &str| session.data_and_weights(session.train(name, options));

    let ended = stage.run(invocation("undisturbed"))?;
    stage.require_success("a run that nothing disturbs", &ended)?;
    let expected = results::of_run(&session.run_folder("undisturbed"));
    for (name, cause) in [("killed", Cause::KilledRank), ("interrupted", Cause::CtrlC)] {
        if !interrupt(stage, invocation(name), name, in_the_middle, cause)? {
            continue;
        }
        let ended = resume(stage, name)?;
        if !stage.check_success(format!("the run continues after {}", cause.text()), &ended) {
            continue;
        }
        let rows = results::of_run(&session.run_folder(name));
        let difference = results::difference(&expected, &rows);
        let allowed = session.scale.of(TOLERANCE_OF_A_GPU, 0.0);
        stage.check(
            format!("after {}, the result is that of the undisturbed run", cause.text()),
            difference <= allowed,
            format!("{}, {}", count(rows.len(), "epoch"), results::compared(difference, allowed)),
        );
    }
    Ok(())
}

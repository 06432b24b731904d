//! A run that is killed or interrupted in the middle, continued to the result of a run that nothing
//! disturbed. Runs are deterministic unless they ask for other algorithms, on a GPU too, so two equal runs
//! must be equal to the last bit.

use serde_json::Value;
use yolo_base::format::count;

use super::interrupted::{Cause, interrupt, resume};
use crate::results;
use crate::stage_run::{StageRun, Stop};

/// The first run, with which the others are compared.
const FIRST: &str = "undisturbed";
/// How far the losses of a continued run may differ where not even two undisturbed runs are equal, which a check of its
/// own says: as much as in runs that add in any order.
const TOLERANCE: f64 = 0.05;

pub(super) fn run(stage: &mut StageRun<'_>) -> Result<(), Stop> {
    let session = stage.session;
    let options = session.scale.of("--imgsz 320 --batch 16 --epochs 8", "--imgsz 64 --batch 16 --epochs 3");
    let in_the_middle = session.scale.of(3, 1);
    let invocation = |name: &str| session.data_and_weights(session.train(name, options));

    let ended = stage.run(invocation(FIRST))?;
    stage.require_success("a run that nothing disturbs", &ended)?;
    let is_deterministic = two_equal_runs(stage, options)?;
    for (name, cause) in [("killed", Cause::KilledRank), ("interrupted", Cause::CtrlC)] {
        if !interrupt(stage, invocation(name), name, in_the_middle, cause)? {
            continue;
        }
        let ended = resume(stage, name)?;
        if !stage.check_success(format!("the run continues after {}", cause.text()), &ended) {
            continue;
        }
        let what = format!("after {}, the result is that of the undisturbed run", cause.text());
        if is_deterministic {
            is_equal(stage, what, name)?;
        } else {
            let difference = results::difference(&rows(stage, FIRST), &rows(stage, name));
            stage.check(what, difference <= TOLERANCE, results::compared(difference, TOLERANCE));
        }
    }
    Ok(())
}

/// Whether another run like the first one is equal to it. On the CPU, the tests of `yolo` show it.
fn two_equal_runs(stage: &mut StageRun<'_>, options: &str) -> Result<bool, Stop> {
    let session = stage.session;
    let what = "two undisturbed runs have equal losses and weights";
    if session.scale.rehearsal {
        stage.skip(what, "the tests of `yolo` compare them on the CPU");
        return Ok(true);
    }
    let name = "undisturbed-again";
    let ended = stage.run(session.data_and_weights(session.train(name, options)))?;
    if !stage.check_success("the same run once more", &ended) {
        return Ok(false);
    }
    is_equal(stage, what.to_owned(), name)
}

/// Checks that a run has the results of the first one in every epoch, and its weights.
fn is_equal(stage: &mut StageRun<'_>, what: String, name: &str) -> Result<bool, Stop> {
    let (expected, found) = (rows(stage, FIRST), rows(stage, name));
    let epochs = count(found.len(), "epoch");
    if expected.is_empty() || expected != found {
        let epoch = expected.iter().zip(&found).position(|(one, other)| one != other);
        let difference = results::difference(&expected, &found);
        let from =
            epoch.map_or_else(String::new, |epoch| format!(", the first difference is in epoch {epoch}"));
        let detail = format!("{epochs}{from}, {}", results::compared(difference, 0.0));
        return Ok(stage.check(what, false, detail));
    }
    let last = |name: &str| stage.session.run_folder(name).join("weights/last.pt");
    let invocation = stage.session.yolo().args("weights --diff --json").arg(last(FIRST)).arg(last(name));
    let ended = stage.run(invocation)?;
    let differences = differing_tensors(&ended.stdout);
    let detail = match differences {
        Some(0) => format!("{epochs}, all numbers are equal"),
        Some(number) => {
            format!("{epochs} with equal losses, but the weights differ in {}", count(number, "tensor"))
        }
        None => format!("`yolo weights --diff` does not say whether the weights are equal: {}", ended.how()),
    };
    Ok(stage.check(what, differences == Some(0), detail))
}

/// How many tensors differ, as `yolo weights --diff --json` says; `None` if it has compared none.
fn differing_tensors(output: &str) -> Option<usize> {
    let report: Value = serde_json::from_str(output).ok()?;
    let tensors = &report["tensors"];
    let number = |field: &Value| field.as_array().map(Vec::len);
    let alone: usize = tensors["only_in"].as_array()?.iter().filter_map(number).sum();
    let differ = alone + number(&tensors["shapes"])? + number(&tensors["values"])?;
    let differ = differ + usize::try_from(tensors["types"].as_u64()?).ok()?;
    (differ > 0 || tensors["equal"].as_u64()? > 0).then_some(differ)
}

fn rows(stage: &StageRun<'_>, name: &str) -> Vec<results::Row> {
    results::of_run(&stage.session.run_folder(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_difference_of_tensors_counts() {
        let text = |equal, types, shapes, values| {
            format!(
                r#"{{"files":[],"facts":[],"tensors":{{"only_in":[[],[]],"shapes":{shapes},"types":{types},"equal":{equal},"values":{values}}}}}"#
            )
        };
        assert_eq!(differing_tensors(&text(349, 0, "[]", "[]")), Some(0));
        assert_eq!(differing_tensors(&text(300, 1, "[{}]", "[{},{}]")), Some(4));
        assert_eq!(differing_tensors(&text(0, 0, "[]", "[]")), None, "nothing was compared");
        assert_eq!(differing_tensors(r#"{"tensors":null}"#), None);
        assert_eq!(differing_tensors(""), None);
    }
}

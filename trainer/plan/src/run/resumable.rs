//! Whether the run of a checkpoint can be resumed. Plans do not read checkpoints, so whoever does passes what is in
//! them: the command before anything starts, and rank 0 when it begins.

use std::path::Path;

use crate::error::PlanError;

/// What a checkpoint needs besides the weights, so that the next step is the one that would have come.
const FIELDS: [&str; 7] =
    ["model", "optimizer", "epoch", "best_fitness", "updates", "batches_done", "last_optimizer_step"];

/// The same in a checkpoint of YOLOv5, which is always of the end of an epoch.
const FIELDS_OF_YOLOV5: [&str; 6] = ["model", "ema", "optimizer", "epoch", "best_fitness", "updates"];
/// The epoch in the files that YOLOv5 leaves at the end of a run.
const FINISHED: i64 = -1;

/// The program that wrote a checkpoint, and what the file says about the end of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenBy {
    /// `yolo`, with state dicts.
    Yolo {
        /// Its field of this name.
        finished: bool,
    },
    /// YOLOv5, with pickled modules.
    Yolov5 {
        /// The last epoch that is complete.
        epoch: Option<i64>,
    },
}

/// Fails unless the run of the checkpoint at `path` can be resumed. `has` is whether the checkpoint has this field.
///
/// # Errors
/// When the run is finished, or the checkpoint holds only weights.
pub fn check_resumable(path: &Path, written: WrittenBy, has: impl Fn(&str) -> bool) -> Result<(), PlanError> {
    let shown = path.display();
    let (finished, fields) = match written {
        WrittenBy::Yolo { finished } => (finished, &FIELDS[..]),
        WrittenBy::Yolov5 { epoch } => (epoch == Some(FINISHED), &FIELDS_OF_YOLOV5[..]),
    };
    if finished {
        return Err(PlanError::new(format!("the run of {shown} is finished, so there is nothing to resume"))
            .with_hint(format!(
                "to train further, start a new run from its weights: `--weights {shown}`; to resume another run, name \
                 its folder after --resume"
            )));
    }
    match fields.iter().find(|field| !has(field)) {
        Some(field) => Err(lacks(path, field)),
        None => Ok(()),
    }
}

/// The error for a checkpoint without this field, or with another kind of value in it.
pub fn lacks(path: &Path, field: &str) -> PlanError {
    let shown = path.display();
    PlanError::new(format!("{shown} cannot be resumed: it has no `{field}`")).with_hint(format!(
        "to start a new run from its weights, use `--weights {shown}` instead of `--resume`"
    ))
}

#[cfg(test)]
mod tests {
    use yolo_base::Hint as _;

    use super::*;

    #[test]
    fn a_checkpoint_needs_everything_that_the_next_step_depends_on() {
        let path = Path::new("last.pt");
        let yolo = |finished| WrittenBy::Yolo { finished };
        assert!(check_resumable(path, yolo(false), |_| true).is_ok());
        let weights = check_resumable(path, yolo(false), |field| field == "model").unwrap_err();
        assert_eq!(weights.to_string(), "last.pt cannot be resumed: it has no `optimizer`");
        let finished = check_resumable(path, yolo(true), |_| true).unwrap_err();
        assert_eq!(finished.to_string(), "the run of last.pt is finished, so there is nothing to resume");
        assert!(finished.hint().unwrap().contains("`--weights last.pt`"));
        let yolov5 = |epoch| WrittenBy::Yolov5 { epoch };
        assert!(check_resumable(path, yolov5(Some(0)), |field| field != "batches_done").is_ok());
        let stripped = check_resumable(path, yolov5(Some(-1)), |_| true).unwrap_err();
        assert!(stripped.to_string().contains("is finished"), "{stripped}");
        let without = check_resumable(path, yolov5(Some(3)), |field| field != "ema").unwrap_err();
        assert_eq!(without.to_string(), "last.pt cannot be resumed: it has no `ema`");
    }
}

//! Whether the run of a checkpoint can be resumed. Plans do not read checkpoints, so whoever does passes what is in
//! them: the command before anything starts, and rank 0 when it begins.

use std::path::Path;

use crate::error::PlanError;

/// What a checkpoint needs besides the weights, so that the next step is the one that would have come.
const FIELDS: [&str; 7] =
    ["model", "optimizer", "epoch", "best_fitness", "updates", "batches_done", "last_optimizer_step"];

/// Fails unless the run of the checkpoint at `path` can be resumed. `finished` is whether the checkpoint says that
/// its run is, and `has` whether it has this field.
///
/// # Errors
/// When the run is finished, or the checkpoint holds only weights.
pub fn check_resumable(path: &Path, finished: bool, has: impl Fn(&str) -> bool) -> Result<(), PlanError> {
    let shown = path.display();
    if finished {
        return Err(PlanError::new(format!("the run of {shown} is finished, so there is nothing to resume"))
            .with_hint(format!(
                "to train further, start a new run from its weights: `--weights {shown}`; to resume another run, name \
                 its folder after --resume"
            )));
    }
    match FIELDS.iter().find(|field| !has(field)) {
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
        assert!(check_resumable(path, false, |_| true).is_ok());
        let weights = check_resumable(path, false, |field| field == "model").unwrap_err();
        assert_eq!(weights.to_string(), "last.pt cannot be resumed: it has no `optimizer`");
        let finished = check_resumable(path, true, |_| true).unwrap_err();
        assert_eq!(finished.to_string(), "the run of last.pt is finished, so there is nothing to resume");
        assert!(finished.hint().unwrap().contains("`--weights last.pt`"));
    }
}

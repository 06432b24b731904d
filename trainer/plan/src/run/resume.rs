//! The plan of `yolo train --resume`: that of the run which is continued, in the same folder.
//! As in YOLOv5 every other option is the one of the first start (spec §10).

use std::path::{Path, PathBuf};

use super::{PLAN_FILE, Planned, RunPlan, Task, folder};
use crate::dataset::Places;
use crate::error::PlanError;

/// The plan that continues the run of `checkpoint`, or of the newest one below `runs` when none is
/// named. Whether the run has ended already is known only from the checkpoint, to the trainer.
///
/// # Errors
/// When there is no such checkpoint, or no training plan beside it.
pub fn plan_resume(checkpoint: Option<&Path>, places: &Places) -> Result<Planned, PlanError> {
    let (checkpoint, notes) = match checkpoint.filter(|path| !path.as_os_str().is_empty()) {
        Some(path) => (given(&places.working_dir.join(path))?, Vec::new()),
        None => {
            let newest = folder::newest_checkpoint(&places.working_dir.join("runs"))?;
            let note = format!("resuming the newest run: {}", newest.display());
            (newest, vec![note])
        }
    };
    let shown = checkpoint.display();
    // A link into the run folder is as good as the file.
    let real = checkpoint
        .canonicalize()
        .map_err(|error| PlanError::new(format!("cannot read the checkpoint {shown}: {error}")))?;
    let candidates = [real.parent().and_then(Path::parent), real.parent()];
    let Some(run_dir) = candidates.into_iter().flatten().find(|folder| folder.join(PLAN_FILE).is_file())
    else {
        return Err(PlanError::new(format!(
            "the run of {shown} cannot be resumed: there is no {PLAN_FILE} in the folder above weights"
        ))
        .with_hint(
            "only runs of `yolo train` can be resumed; start a new one from these tensors with --weights",
        ));
    };
    let mut plan = RunPlan::read(&run_dir.join(PLAN_FILE))?;
    let Task::Train(task) = &mut plan.task else {
        return Err(PlanError::new(format!(
            "the run of {shown} was not a training, so there is nothing to resume"
        )));
    };
    task.resume = Some(real.clone());
    plan.run_dir = run_dir.to_path_buf();
    plan.program = super::program();
    Ok(Planned { plan, warnings: Vec::new(), notes })
}

/// The checkpoint that a path means: a file, or a run folder with `weights/last.pt`.
fn given(path: &Path) -> Result<PathBuf, PlanError> {
    if path.is_dir() {
        for inside in ["weights/last.pt", "last.pt"] {
            let file = path.join(inside);
            if file.is_file() {
                return Ok(file);
            }
        }
        return Err(PlanError::new(format!(
            "--resume {}: there is no weights/last.pt in this folder",
            path.display()
        )));
    }
    if path.is_file() {
        return Ok(path.to_path_buf());
    }
    Err(PlanError::new(format!("--resume {}: there is no such checkpoint", path.display()))
        .with_hint("a bare --resume continues the newest run below runs"))
}

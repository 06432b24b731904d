//! The plan of `yolo train --resume`: the plan of the run that it continues, in the same folder. As in
//! YOLOv5, all other options are those of the first start (spec §10).

use std::path::{Path, PathBuf};

use super::{PLAN_FILE, Planned, RunPlan, Task, folder};
use crate::dataset::Places;
use crate::error::PlanError;

/// The plan that continues the run of `checkpoint`, or of the newest one below `runs`. Only the trainer
/// reads the checkpoint and can tell whether the run has already finished.
///
/// # Errors
/// When there is no such checkpoint, or no training plan in its run folder.
pub fn plan_resume(checkpoint: Option<&Path>, places: &Places) -> Result<Planned, PlanError> {
    let (checkpoint, notes) = match checkpoint.filter(|path| !path.as_os_str().is_empty()) {
        Some(path) => (checkpoint_at(&places.working_dir.join(path))?, Vec::new()),
        None => {
            let newest = folder::newest_checkpoint(&places.working_dir.join("runs"))?;
            let note = format!("resuming the newest run: {}", newest.display());
            (newest, vec![note])
        }
    };
    let shown = checkpoint.display();
    // The argument may be a link to a file in a run folder.
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
            "only runs of `yolo train` can be resumed; start a new run from these weights with --weights",
        ));
    };
    let mut plan = RunPlan::read(&run_dir.join(PLAN_FILE))?;
    let Task::Train(task) = &mut plan.task else {
        return Err(PlanError::new(format!(
            "the run of {shown} was not a training run and cannot be resumed"
        )));
    };
    task.resume = Some(real.clone());
    plan.run_dir = run_dir.to_path_buf();
    plan.program = super::program();
    Ok(Planned { plan, warnings: Vec::new(), notes })
}

/// The checkpoint at a path: a file, or `weights/last.pt` in a run folder.
fn checkpoint_at(path: &Path) -> Result<PathBuf, PlanError> {
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
    Err(PlanError::new(format!("--resume {}: this checkpoint does not exist", path.display()))
        .with_hint("--resume without a path continues the most recent run under runs/"))
}

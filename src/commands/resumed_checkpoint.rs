//! The checkpoint that a run is to be resumed from, before anything starts: whether it can be read and its run is
//! not finished. If not, the message says what of the run is still of use.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fs_err as fs;
use yolo_plan::{PlanError, RunPlan};

use crate::launch::run_folder;
use crate::weights_file::check_resumable;

/// Fails unless the run of the plan can be resumed from its checkpoint, if it is to be.
///
/// # Errors
/// When the file is no checkpoint, is damaged or holds only weights, or its run is finished.
pub(super) fn check(plan: &RunPlan) -> Result<(), PlanError> {
    let Some(path) = plan.task.train().and_then(|task| task.resume.as_deref()) else { return Ok(()) };
    let file = match torch_checkpoint::read(path) {
        Ok(file) => file,
        Err(error) => {
            let others = others(path, &plan.run_dir.join("weights"));
            return Err(PlanError::new(format!("the run cannot be resumed: {error}"))
                .with_hint(instead(&plan.run_dir, &others)));
        }
    };
    let Err(error) = check_resumable(path, &file) else { return Ok(()) };
    // The run may go on although this one of its checkpoints is stripped, as best.pt is first.
    let last = plan.run_dir.join("weights/last.pt");
    if last != path && is_resumable(&last) {
        let folder = plan.run_dir.display();
        return Err(error.with_hint(format!("resume the run from its last checkpoint: `--resume {folder}`")));
    }
    Err(error)
}

fn is_resumable(path: &Path) -> bool {
    torch_checkpoint::read(path).is_ok_and(|file| check_resumable(path, &file).is_ok())
}

/// The other checkpoints of the run, the newest first.
fn others(path: &Path, weights: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(weights).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    let of_the_run = |file: &PathBuf| {
        file != path
            && file.extension().is_some_and(|extension| extension == "pt")
            && file.file_name().is_some_and(|name| name != run_folder::EARLIER)
    };
    let mut files: Vec<PathBuf> = files.filter(of_the_run).collect();
    let written = |file: &PathBuf| {
        file.metadata().and_then(|metadata| metadata.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
    };
    files.sort_by_key(|file| std::cmp::Reverse(written(file)));
    files
}

/// What to do if the named file cannot be used.
fn instead(run_dir: &Path, others: &[PathBuf]) -> String {
    let last = run_dir.join("weights/last.pt");
    match others.iter().find(|file| is_resumable(file)) {
        Some(file) if *file == last => {
            format!("resume the run by its folder: `--resume {}`", run_dir.display())
        }
        Some(file) => format!(
            "resume the run from another of its checkpoints: `--resume {}`; what came after it is repeated",
            file.display()
        ),
        None => match others.iter().find(|file| torch_checkpoint::read(file).is_ok()) {
            Some(file) => {
                format!("start a new run from the weights that it has: `--weights {}`", file.display())
            }
            None => "the run has no other checkpoint that can be read, so start a new run".to_owned(),
        },
    }
}

//! The folder of a run: made by one exclusive call, so that two runs started at once never share
//! one, with the plan that every rank reads and the files that YOLOv5 leaves beside it.

use std::path::{Path, PathBuf};

use fs_err as fs;
use yolo_plan::RunPlan;
use yolo_plan::run::{Task, increment};

use crate::error::CommandError;

/// Makes the folder of `plan`, taking the next free name when another run was faster, and writes
/// the plan into it. Returns the plan's file.
pub(crate) fn create(plan: &mut RunPlan, exist_ok: bool) -> Result<PathBuf, CommandError> {
    let project = plan.run_dir.parent().map(Path::to_owned).unwrap_or_default();
    fs::create_dir_all(&project).map_err(unwritable)?;
    while let Err(error) = fs::create_dir(&plan.run_dir) {
        if error.kind() != std::io::ErrorKind::AlreadyExists {
            return Err(unwritable(error));
        }
        if exist_ok {
            break;
        }
        let name = plan.run_dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        plan.run_dir = increment(&project, name.trim_end_matches(|c: char| c.is_ascii_digit()), false)?;
    }
    if matches!(plan.task, Task::Train(_)) {
        fs::create_dir_all(plan.run_dir.join("weights")).map_err(unwritable)?;
    }
    write(plan)
}

/// Writes the plan into its folder, which exists.
pub(crate) fn write(plan: &RunPlan) -> Result<PathBuf, CommandError> {
    Ok(plan.write()?)
}

fn unwritable(source: std::io::Error) -> CommandError {
    CommandError::File {
        what: "the run folder cannot be made".to_owned(),
        source,
        hint: Some("choose a folder that you may write with `--project`".to_owned()),
    }
}

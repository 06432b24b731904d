//! Creating the folder of a run. One exclusive call creates it, so that two runs started at the same
//! time never share a folder.

use std::path::{Path, PathBuf};

use fs_err as fs;
use yolo_plan::RunPlan;
use yolo_plan::run::{Task, increment};

use super::LaunchError;

/// Creates the folder of `plan`, under the next free name if another run was faster, and writes the
/// plan into it. Returns the plan's file.
///
/// # Errors
/// When the folder cannot be created or written.
pub(crate) fn create(plan: &mut RunPlan, exist_ok: bool) -> Result<PathBuf, LaunchError> {
    claim(plan, exist_ok)?;
    if matches!(plan.task, Task::Train(_)) {
        fs::create_dir_all(plan.run_dir.join("weights")).map_err(|source| LaunchError::Folder { source })?;
    }
    Ok(plan.write()?)
}

/// Creates the folder of `plan` and leaves it empty.
///
/// # Errors
/// When it cannot be created.
pub(crate) fn claim(plan: &mut RunPlan, exist_ok: bool) -> Result<(), LaunchError> {
    let unwritable = |source| LaunchError::Folder { source };
    let project = plan.run_dir.parent().map(Path::to_owned).unwrap_or_default();
    if project.is_file() {
        return Err(LaunchError::ProjectIsFile { path: project });
    }
    fs::create_dir_all(&project).map_err(unwritable)?;
    // Invariant: unless the user allows it, a run never writes into a folder that it did not create.
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
    Ok(())
}

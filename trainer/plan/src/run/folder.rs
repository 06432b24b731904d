//! The run folder: `exp`, then `exp2`, `exp3` and so on, and the search for the newest checkpoint.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::dataset::Places;
use crate::error::PlanError;

/// The depth of the search below `runs`; `runs/train/exp/weights/last.pt` is at depth four.
const MAX_DEPTH: usize = 8;

/// The folder of a new run, in which `--name` defaults to `exp`.
pub(super) fn of_run(
    project: &Path,
    name: Option<&str>,
    exist_ok: bool,
    places: &Places,
) -> Result<PathBuf, PlanError> {
    increment(&places.working_dir.join(project), name.unwrap_or("exp"), exist_ok)
}

/// The folder for a new run: `project/name`, or the first of `name2`, `name3`, … that does not
/// exist. Nothing is created: the caller creates it exclusively, and calls again if it exists by then.
///
/// # Errors
/// When `name` is empty, or is a file.
pub fn increment(project: &Path, name: &str, exist_ok: bool) -> Result<PathBuf, PlanError> {
    check_name(name)?;
    let first = project.join(name);
    if exist_ok && first.exists() && !first.is_dir() {
        return Err(PlanError::new(format!(
            "the run folder {} cannot be used: it is a file",
            first.display()
        ))
        .with_hint("give another --name or --project"));
    }
    // A dangling link exists, too: nothing may be created through it.
    if exist_ok || first.symlink_metadata().is_err() {
        return Ok(first);
    }
    let mut number: u64 = 2;
    loop {
        let folder = project.join(format!("{name}{number}"));
        if folder.symlink_metadata().is_err() {
            return Ok(folder);
        }
        number += 1;
    }
}

/// `--name` must be the name of a folder.
pub(super) fn check_name(name: &str) -> Result<(), PlanError> {
    if name.trim().is_empty() || matches!(name, "." | "..") {
        return Err(PlanError::usage(format!("--name {name:?} is not a valid name for a run folder"))
            .with_hint("omit --name for exp, exp2, exp3, …"));
    }
    Ok(())
}

/// The newest `last*.pt` below `runs`, which `--resume` without an argument continues.
///
/// # Errors
/// When there is none.
pub fn newest_checkpoint(runs: &Path) -> Result<PathBuf, PlanError> {
    let mut newest: Option<(SystemTime, PathBuf)> = None;
    let mut folders = vec![(runs.to_path_buf(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        // A folder that cannot be read has no checkpoint to resume.
        for entry in std::fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok) {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => folders.push((path, depth + 1)),
                Ok(kind) if kind.is_file() && name.starts_with("last") && name.ends_with(".pt") => {
                    let time =
                        entry.metadata().and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
                    // Among equal times the name decides, so that the choice is deterministic.
                    if newest.as_ref().is_none_or(|best| (best.0, &best.1) < (time, &path)) {
                        newest = Some((time, path));
                    }
                }
                _ => {}
            }
        }
    }
    newest.map(|(_, path)| path).ok_or_else(|| {
        PlanError::new(format!(
            "there is no run to resume: no last*.pt in {} or its subfolders",
            runs.display()
        ))
        .with_hint("name the checkpoint: --resume path/to/weights/last.pt")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_numbered_as_in_yolov5() {
        let project = tempfile::tempdir().unwrap();
        for expected in ["exp", "exp2", "exp3"] {
            let folder = increment(project.path(), "exp", false).unwrap();
            assert_eq!(folder, project.path().join(expected));
            std::fs::create_dir(&folder).unwrap();
        }
        assert_eq!(increment(project.path(), "exp", true).unwrap(), project.path().join("exp"));
        assert!(increment(project.path(), "", false).is_err());
    }

    #[test]
    fn the_newest_checkpoint_is_resumed() {
        let runs = tempfile::tempdir().unwrap();
        let message = newest_checkpoint(runs.path()).unwrap_err().to_string();
        assert!(message.starts_with("there is no run to resume"), "{message}");
        let mut paths = Vec::new();
        for (age, run) in [(0, "exp2"), (100, "exp10"), (200, "exp")] {
            let folder = runs.path().join("train").join(run).join("weights");
            std::fs::create_dir_all(&folder).unwrap();
            let path = folder.join("last.pt");
            let file = std::fs::File::create(&path).unwrap();
            file.set_modified(SystemTime::now() - std::time::Duration::from_secs(age)).unwrap();
            std::fs::write(folder.join("best.pt"), "newer, but not what is resumed").unwrap();
            paths.push(path);
        }
        assert_eq!(newest_checkpoint(runs.path()).unwrap(), paths[0]);
    }
}

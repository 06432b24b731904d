//! The checkpoint from which an interrupted or failed run can be resumed. With `--exist-ok` the run
//! folder may hold the checkpoint of an earlier run; that one is not offered.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use yolo_plan::RunPlan;

use super::programs::Programs;

/// Where a run on several machines can be resumed.
pub(crate) const ON_SEVERAL: &str =
    "on this machine alone, or on all with --nnodes and the other options about machines";

/// The `last.pt` of a run, which may not have been written yet.
#[derive(Debug)]
pub(super) struct LastCheckpoint {
    path: PathBuf,
    /// The command that resumes a run from it.
    command: &'static str,
    /// When the `last.pt` of an earlier run was written.
    earlier: Option<SystemTime>,
    /// The run folder, if the run can be started again from its plan before it has a checkpoint.
    folder: Option<PathBuf>,
    /// Whether machines of `--nnodes` take part.
    several: bool,
}

impl LastCheckpoint {
    /// The checkpoint of `plan`, which these programs run. Invariant: created before the ranks start, which
    /// may replace it.
    pub(super) fn of(plan: &RunPlan, programs: &Programs) -> Self {
        let starts_again = plan.ranks.are_all() && plan.task.train().is_some();
        let folder = starts_again.then(|| plan.run_dir.clone());
        let several = !plan.ranks.are_all() && !programs.meet_elsewhere();
        let command = programs.resume_command();
        Self { command, folder, several, ..Self::new(&plan.run_dir, plan.resumes()) }
    }

    /// The checkpoint of a run in `run_dir`. A resumed run can be resumed again from the checkpoint
    /// with which it starts.
    pub(super) fn new(run_dir: &Path, resumes: bool) -> Self {
        let path = run_dir.join("weights").join("last.pt");
        let earlier = if resumes { None } else { written(&path) };
        Self { path, command: "yolo train --resume", earlier, folder: None, several: false }
    }

    /// Its path, if this run can be resumed from it.
    pub(super) fn path(&self) -> Option<PathBuf> {
        written(&self.path).filter(|&written| Some(written) != self.earlier).map(|_| self.path.clone())
    }

    /// How the run goes on, if it can.
    pub(super) fn advice(&self) -> Option<String> {
        let command = |path: &Path| format!("`{} {}`", self.command, path.display());
        match (self.path(), &self.folder) {
            (Some(last), _) if self.several => {
                Some(format!("resume the run with {}, {ON_SEVERAL}", command(&last)))
            }
            (Some(last), _) => Some(format!("resume the run with {}", command(&last))),
            (None, Some(folder)) => Some(format!("start the run again with {}", command(folder))),
            (None, None) => None,
        }
    }
}

/// When the file was last written, if it exists.
fn written(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|metadata| metadata.modified()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checkpoint_of_an_earlier_run_is_not_offered() {
        let folder = tempfile::tempdir().unwrap();
        let last = folder.path().join("weights/last.pt");
        fs_err::create_dir_all(last.parent().unwrap()).unwrap();
        assert_eq!(LastCheckpoint::new(folder.path(), false).path(), None);

        let write = |minutes: u64| {
            let file = fs_err::File::create(&last).unwrap();
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(minutes * 60);
            file.file().set_modified(time).unwrap();
        };
        write(1);
        let checkpoint = LastCheckpoint::new(folder.path(), false);
        assert_eq!(checkpoint.path(), None, "it is of an earlier run");
        write(2);
        assert_eq!(checkpoint.path(), Some(last.clone()), "this run replaced it");
        assert_eq!(LastCheckpoint::new(folder.path(), true).path(), Some(last), "the run is resumed");
    }
}

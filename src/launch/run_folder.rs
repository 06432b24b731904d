//! Creating the folder of a run. One exclusive call creates it, and a lock keeps it, so that two runs never share
//! a folder. What an earlier run left there (`--exist-ok`) never becomes part of the new one.

use std::fs::File;
#[cfg(unix)]
use std::fs::TryLockError;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use fs_err as fs;
use yolo_plan::RunPlan;
use yolo_plan::run::{PLAN_FILE, Task, increment};

use super::{LaunchError, have_output};

/// Where the last checkpoint of an earlier run in the same folder goes.
pub(crate) const EARLIER: &str = "last_of_earlier_run.pt";

/// The file of a plan in the folder of its run. No other run can use the folder while this value exists, nor
/// after this process is killed.
pub(crate) struct PlanFile {
    path: PathBuf,
    /// Whether this run created the folder.
    created: bool,
    _lock: Option<File>,
}

impl PlanFile {
    /// Removes the folder of a run that came to nothing: if the run created it, and it holds no more than the plan,
    /// empty folders, and logs without a word of a library. Returns whether it did.
    pub(crate) fn remove_unused_folder(self) -> bool {
        let Some(folder) = self.path.parent().filter(|_| self.created) else { return false };
        let is_empty = |folder: &Path| fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
        let is_nothing = |entry: &std::io::Result<fs::DirEntry>| {
            let Ok(entry) = entry else { return false };
            match entry.file_name().to_str() {
                Some(PLAN_FILE) => true,
                Some("weights" | "labels" | "crops") => is_empty(&entry.path()),
                Some("logs") => !have_output(&entry.path()),
                _ => false,
            }
        };
        let unused = fs::read_dir(folder).is_ok_and(|mut entries| entries.all(|entry| is_nothing(&entry)));
        unused && fs::remove_dir_all(folder).is_ok()
    }
}

impl Deref for PlanFile {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

/// Creates the folder of `plan`, under the next free name if another run was faster, and writes the
/// plan into it.
///
/// # Errors
/// When the folder cannot be created or written, or another run uses it.
pub(crate) fn create(plan: &mut RunPlan, exist_ok: bool) -> Result<PlanFile, LaunchError> {
    let created = claim(plan, exist_ok)?;
    let lock = lock(&plan.run_dir)?;
    if let Task::Train(task) = &plan.task {
        let unwritable = |source| LaunchError::Folder { source };
        let weights = plan.run_dir.join("weights");
        fs::create_dir_all(&weights).map_err(unwritable)?;
        let last = weights.join("last.pt");
        // If this run is killed before its first checkpoint, it must not be resumed from that of another run.
        if task.resume.is_none() && last.exists() {
            fs::rename(&last, weights.join(EARLIER)).map_err(unwritable)?;
        }
    }
    Ok(PlanFile { path: plan.write()?, created, _lock: lock })
}

/// Locks a folder until the file is closed, which the kernel does when the process ends in any way. `None` on
/// file systems that have no such locks.
#[cfg(unix)]
pub(crate) fn lock(folder: &Path) -> Result<Option<File>, LaunchError> {
    let Ok(file) = File::open(folder) else { return Ok(None) };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => {
            Err(LaunchError::InUse { path: folder.to_owned(), process: process_that_locks(&file) })
        }
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// Windows does not open folders, and starts no ranks.
#[cfg(not(unix))]
pub(crate) fn lock(_folder: &Path) -> Result<Option<File>, LaunchError> {
    Ok(None)
}

/// The process that holds a lock on this file, if the system says so.
#[cfg(unix)]
fn process_that_locks(file: &File) -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;
    let inode = file.metadata().ok()?.ino();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    // 1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF
    locks.lines().find_map(|line| {
        let [_, kind, _, _, process, of, ..] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            return None;
        };
        let is_it = kind == "FLOCK" && of.rsplit(':').next()?.parse() == Ok(inode);
        process.parse().ok().filter(|_| is_it)
    })
}

/// Creates the folder of `plan` and leaves it empty. Returns false if it was there, which `exist_ok` allows.
///
/// # Errors
/// When it cannot be created.
pub(crate) fn claim(plan: &mut RunPlan, exist_ok: bool) -> Result<bool, LaunchError> {
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
            return Ok(false);
        }
        let name = plan.run_dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        plan.run_dir = increment(&project, name.trim_end_matches(|c: char| c.is_ascii_digit()), false)?;
    }
    Ok(true)
}

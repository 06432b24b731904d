//! The programs of a run, and what they need to start.

use std::ffi::OsString;
use std::path::PathBuf;

use yolo_base::env::MASTER_ADDR;

/// What is started.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    /// The trainer.
    pub(crate) trainer: PathBuf,
    /// The variant of the libtorch that the trainer loads: `cpu`, `cu130`, …
    pub(crate) variant: String,
    /// The version of that libtorch: `2.11.0+cpu`.
    pub(crate) libtorch: String,
    /// The folder of the libtorch that the trainer loads.
    pub(crate) libtorch_lib: PathBuf,
    /// The variables by which the trainer finds it.
    pub(crate) environment: Vec<(OsString, OsString)>,
}

impl Programs {
    /// Whether another launcher starts the ranks, and tells them where they meet.
    pub(super) fn meet_elsewhere(&self) -> bool {
        self.environment.iter().any(|(name, _)| name == MASTER_ADDR)
    }

    /// The command that resumes a run of these ranks: `yolo rank` if another launcher starts them, which is
    /// why they are told here where they meet.
    pub(crate) fn resume_command(&self) -> &'static str {
        if self.meet_elsewhere() { "yolo rank --resume" } else { "yolo train --resume" }
    }
}

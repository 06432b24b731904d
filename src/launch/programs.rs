//! The programs of a run, and what they need to start.

use std::ffi::OsString;
use std::path::PathBuf;

/// What is started.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    /// The trainer.
    pub(crate) trainer: PathBuf,
    /// The folder of the libtorch that the trainer loads.
    pub(crate) libtorch_lib: PathBuf,
    /// The variables by which the trainer finds it.
    pub(crate) environment: Vec<(OsString, OsString)>,
}

//! Why the kit itself stops. A program under test that fails is not an error of the kit, but a check
//! that failed.

use std::io;
use std::path::PathBuf;

/// An error of the kit.
#[derive(Debug, thiserror::Error)]
pub enum KitError {
    /// The kit is incomplete.
    #[error("the kit has no {what} at {}; unpack the archive again", path.display())]
    Incomplete {
        /// What is missing.
        what: &'static str,
        /// Where it should be.
        path: PathBuf,
    },
    /// A file of the kit or a report is invalid.
    #[error("{} is not a {what}: {why}", path.display())]
    Invalid {
        /// What it should be.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it is not.
        why: String,
    },
    /// The options exclude all stages.
    #[error("--only and --skip together select no stage; `--help` lists the stages")]
    NothingSelected,
    /// The machine lacks something that all stages need.
    #[error("no stage can run on this machine: {0}")]
    Unable(String),
    /// Reports of different kits or machines.
    #[error("the reports {} and {} cannot be joined: {why}", first.display(), second.display())]
    Unlike {
        /// One report.
        first: PathBuf,
        /// The other one.
        second: PathBuf,
        /// What differs.
        why: String,
    },
    /// A file could not be read or written. The message names it.
    #[error("{0}")]
    Io(#[from] io::Error),
}

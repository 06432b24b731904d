//! The record of one change: a versioned JSON file in a folder of its own, next to copies of the files that
//! the change replaced. Later versions may add fields; a record with a higher version is left alone.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The version of the format.
pub(super) const VERSION: u32 = 1;

/// The file that holds a record, in its folder.
pub(super) const FILE: &str = "record.json";

/// One change of this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The version of the format.
    pub(super) version: u32,
    /// Its number, which is also the name of its folder.
    pub(crate) number: u64,
    /// When it was made, in seconds since 1970.
    pub(crate) at: u64,
    /// The command that made it, such as `yolo doctor --fix`.
    pub(crate) command: String,
    /// What was changed, such as "set OMP_NUM_THREADS in /home/ada/.config/yolo/env.sh".
    pub(crate) what: String,
    /// How far the change is.
    pub(crate) state: State,
    /// How it is undone, in this order.
    #[serde(default)]
    pub(crate) steps: Vec<Step>,
    /// Why a change without steps is not undone, or what remains of one with steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stays: Option<String>,
    /// Where it is, if no step says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<PathBuf>,
    /// What a person can type instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) by_hand: Option<String>,
    /// The number of the change that this one undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) undoes: Option<u64>,
}

/// How far a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    /// Noted. If no process is making it, it was interrupted, and the disk says how far it came.
    Begun,
    /// Made.
    Made,
    /// Undone.
    Undone,
}

/// One step of undoing a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Step {
    /// Puts a file back as it was.
    File {
        /// The file.
        path: PathBuf,
        /// The name of the copy from before the change; absent if there was no file.
        before: Option<String>,
        /// The name of the copy of what was written; absent if the file was removed.
        after: Option<String>,
    },
    /// Removes a file or a folder that `yolo setup` can bring again.
    Download {
        /// Where it is.
        path: PathBuf,
        /// The SHA-256 of a file as it was installed. Another file under its name is kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
    },
    /// Removes a folder that was created, if it is empty.
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// Takes permissions away again.
    Permissions {
        /// The file or folder.
        path: PathBuf,
        /// The permissions before.
        before: u32,
        /// The permissions that were set.
        after: u32,
    },
    /// Lets the loader read its folders again.
    Ldconfig,
    /// Removes the Linux program, and nothing else, from a WSL distribution.
    LinuxProgram {
        /// The distribution.
        distribution: String,
    },
}

impl Step {
    /// The file or folder that it is about.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. }
            | Self::Download { path, .. }
            | Self::Folder { path }
            | Self::Permissions { path, .. } => Some(path),
            Self::Ldconfig | Self::LinuxProgram { .. } => None,
        }
    }
}

impl Record {
    /// Whether the change counts: it was made, or begun and perhaps made, and was not undone.
    pub(crate) fn is_in_force(&self) -> bool {
        self.state != State::Undone
    }

    /// The files and folders that it is about.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.steps.iter().filter_map(Step::path).chain(self.place.as_deref())
    }

    /// Whether undoing it can be undone as well: only small files and permissions are kept.
    pub(super) fn can_be_redone(&self) -> bool {
        let is_kept = |step: &Step| !matches!(step, Step::Download { .. } | Step::LinuxProgram { .. });
        self.steps.iter().all(is_kept) && self.steps.iter().any(|step| matches!(step, Step::File { .. }))
    }
}

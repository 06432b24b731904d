//! Changes to a host, as data. A check that knows a safe remedy lists its changes, and
//! `yolo doctor --fix` applies them: nothing in this crate changes anything. There are few kinds of
//! change, each with one careful implementation, so checks need no code of their own for `--fix`.

use serde::Serialize;

use crate::wsl::config::ConfigFile;

/// One change that fixes a finding, or part of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Change {
    /// Edits to `.wslconfig` or `wsl.conf`. The rest of the file is kept; its encoding is changed to
    /// one that every WSL reads, which is all that happens if there are no edits.
    Settings {
        /// The file, as this system sees it: `/mnt/c/Users/mara/.wslconfig`.
        file: String,
        /// Which of the two files it is.
        #[serde(skip)]
        of: ConfigFile,
        /// The edits, in order.
        edits: Vec<Edit>,
    },
    /// An environment variable, written to a file that the user sources.
    Variable {
        /// Its name.
        name: String,
        /// Its value, which may refer to other variables in shell syntax; `None` unsets it.
        value: Option<String>,
    },
    /// A folder to add to the loader's search path, such as `/usr/lib/wsl/lib`.
    LoaderFolder {
        /// The folder.
        folder: String,
    },
    /// Creates a missing folder of `yolo`.
    MakeFolder {
        /// Its path.
        path: String,
    },
    /// Adds permissions to a file or folder of `yolo`.
    Permissions {
        /// Its path.
        path: String,
        /// The bits to set; bits that are already set are kept.
        add: u32,
    },
    /// Removes a useless file or folder of `yolo`: an old lock, an incomplete download.
    Remove {
        /// Its path.
        path: String,
    },
    /// Stops a process of `yolo` that outlived its run.
    EndProcess {
        /// Its process id.
        pid: u32,
        /// Its name, compared again before it is stopped, because process ids are reused.
        name: String,
    },
}

/// One key of a settings file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Edit {
    /// Such as `wsl2`.
    pub section: String,
    /// Such as `memory`.
    pub key: String,
    /// The value to set; `None` removes the key.
    pub value: Option<String>,
}

impl Edit {
    /// Sets a key.
    pub fn set(section: &str, key: &str, value: impl Into<String>) -> Self {
        Self { section: section.to_owned(), key: key.to_owned(), value: Some(value.into()) }
    }

    /// Removes a key.
    pub fn remove(section: &str, key: &str) -> Self {
        Self { section: section.to_owned(), key: key.to_owned(), value: None }
    }
}

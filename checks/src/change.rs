//! Changes of a host as data. A check that knows a safe remedy names the changes that make it, and
//! `yolo doctor --fix` is what applies them: nothing in this crate changes anything. There are few
//! kinds, so that each has one careful hand, and a check needs no code of its own for `--fix`.

use serde::Serialize;

use crate::wsl::config::ConfigFile;

/// One change that mends a finding, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Change {
    /// Keys of `.wslconfig` or `wsl.conf`. Whatever else the file holds stays; its encoding becomes
    /// one that every WSL reads, which is all that happens when there are no edits.
    Settings {
        /// The file, as this system sees it: `/mnt/c/Users/mara/.wslconfig`.
        file: String,
        /// Which of the two it is.
        #[serde(skip)]
        of: ConfigFile,
        /// In this order.
        edits: Vec<Edit>,
    },
    /// A variable of the shell, written into a file to source.
    Variable {
        /// Its name.
        name: String,
        /// Its value, which may refer to others as the shell does; `None` unsets it.
        value: Option<String>,
    },
    /// A folder that the loader shall search, such as `/usr/lib/wsl/lib`.
    LoaderFolder {
        /// The folder.
        folder: String,
    },
    /// A folder of `yolo`'s own that is missing.
    MakeFolder {
        /// Its path.
        path: String,
    },
    /// Permissions of a file or folder of `yolo`'s own.
    Permissions {
        /// Its path.
        path: String,
        /// The bits to set: those that are set already stay.
        add: u32,
    },
    /// A file or folder of `yolo`'s own that is of no use: an old lock, half a download.
    Remove {
        /// Its path.
        path: String,
    },
    /// A process of `yolo`'s own that its run left behind.
    EndProcess {
        /// Its number.
        pid: u32,
        /// Its name, compared again before it is ended, since numbers are used again.
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

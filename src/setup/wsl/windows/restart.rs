//! A note that Windows features were installed, so that a second run before the restart does not
//! install them again.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::setup::wsl::error::WslError;

/// The note, as a file.
#[derive(Debug, Clone)]
pub(in crate::setup::wsl) struct RestartNote {
    pub(super) file: PathBuf,
    /// When Windows started, in seconds since 1970.
    pub(super) windows_started: u64,
}

/// What setup has done about the Windows features that WSL needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Features {
    /// Nothing, as far as this installation knows.
    NotInstalled,
    /// It has installed them, and Windows has not restarted since.
    RestartDue,
    /// It had installed them before Windows last started.
    InEffect,
}

/// What the file holds.
#[derive(Serialize, Deserialize)]
struct Installed {
    /// When features were installed, in seconds since 1970.
    at: u64,
}

impl RestartNote {
    /// The note of this PC.
    pub(in crate::setup::wsl) fn new(data: &Path) -> Self {
        Self { file: data.join("wsl-installed.json"), windows_started: sysinfo::System::boot_time() }
    }

    /// Notes that features were installed now.
    pub(super) fn write(&self) -> Result<(), WslError> {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let note = serde_json::json!(Installed { at }).to_string();
        if let Some(folder) = self.file.parent() {
            std::fs::create_dir_all(folder).map_err(WslError::file("create", folder))?;
        }
        std::fs::write(&self.file, note).map_err(WslError::file("write", &self.file))
    }

    /// What the note says.
    pub(super) fn features(&self) -> Features {
        let bytes = std::fs::read(&self.file).unwrap_or_default();
        match serde_json::from_slice::<Installed>(&bytes) {
            Ok(note) if note.at > self.windows_started => Features::RestartDue,
            Ok(_) => Features::InEffect,
            Err(_) => Features::NotInstalled,
        }
    }
}

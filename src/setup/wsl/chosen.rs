//! The distribution that `yolo setup --wsl` has prepared, as a setting of the Windows user: commands at a Windows prompt
//! run there.

use serde::{Deserialize, Serialize};

use super::error::WslError;
use crate::dirs::YoloDirs;

/// The file in the settings folder.
const FILE: &str = "wsl.json";

/// What the file holds.
#[derive(Serialize, Deserialize)]
struct Chosen {
    distribution: String,
}

/// The prepared distribution, if there is one.
pub(crate) fn prepared_distribution(dirs: &YoloDirs) -> Option<String> {
    let bytes = std::fs::read(dirs.config().join(FILE)).ok()?;
    serde_json::from_slice::<Chosen>(&bytes).ok().map(|chosen| chosen.distribution)
}

/// Notes that a distribution is prepared.
pub(super) fn remember(config: &std::path::Path, distribution: &str) -> Result<(), WslError> {
    let text = serde_json::json!(Chosen { distribution: distribution.to_owned() }).to_string();
    std::fs::create_dir_all(config).map_err(WslError::file("create", config))?;
    // Invariant: the setting is complete or absent, because it appears by one rename.
    let path = config.join(FILE);
    let new = config.join(format!("{FILE}.new"));
    std::fs::write(&new, text).map_err(WslError::file("write", &new))?;
    std::fs::rename(&new, &path).map_err(WslError::file("write", &path))
}

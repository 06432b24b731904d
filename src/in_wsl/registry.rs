//! The distributions of this user as Windows' registry lists them, which takes no time and starts nothing. WSL keeps
//! them there since its beginning; where the list is empty, `wsl.exe` is asked.

use yolo_checks::wsl::exe_output::Distribution;

/// The key in which WSL keeps its distributions.
#[cfg(windows)]
const KEY: &str = r"Software\Microsoft\Windows\CurrentVersion\Lxss";

/// The distributions in the registry.
#[cfg(windows)]
pub(super) fn distributions() -> Vec<Distribution> {
    read().unwrap_or_default()
}

/// Elsewhere there is no registry.
#[cfg(not(windows))]
pub(super) fn distributions() -> Vec<Distribution> {
    Vec::new()
}

#[cfg(windows)]
fn read() -> windows_registry::Result<Vec<Distribution>> {
    let key = windows_registry::CURRENT_USER.open(KEY)?;
    let default = key.get_string("DefaultDistribution").unwrap_or_default();
    let entry = |id: String| {
        let entry = key.open(&id).ok()?;
        let name = entry.get_string("DistributionName").ok()?;
        let version =
            entry.get_u32("Version").ok().and_then(|version| u8::try_from(version).ok()).unwrap_or(2);
        // 1 is installed; others are being installed, converted or removed.
        let is_ready = entry.get_u32("State").map_or(true, |state| state == 1);
        let default = id.eq_ignore_ascii_case(&default);
        is_ready.then(|| Distribution { name, default, state: String::new(), version })
    };
    Ok(key.keys()?.filter_map(entry).collect())
}

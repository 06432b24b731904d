//! What the checks of WSL have in common: whether the host is WSL at all, and commands in remedies.

use crate::facts::{Fact, Host, WslConfig};

/// Where WSL shows the Windows driver's libraries.
pub(super) const LIBRARIES: &str = crate::wsl::DRIVER_LIBRARIES;
/// The command that shuts WSL down, so that it reads its settings at the next start.
pub(super) const SHUTDOWN: &str = "wsl.exe --shutdown";

/// Whether this is WSL 2 itself, not a container in it.
pub(super) fn is_wsl_itself(host: &Host) -> Fact<bool> {
    Ok(host.is_wsl2()? && !host.is_container())
}

/// Whether this is Windows or WSL 2, where `.wslconfig` matters.
pub(super) fn has_wslconfig(host: &Host) -> Fact<bool> {
    Ok((host.is_windows()? || host.is_wsl2()?) && !host.is_container())
}

/// The command that opens `.wslconfig` in a Windows editor.
pub(super) fn edit(host: &Host, config: &WslConfig) -> String {
    format!("notepad.exe '{}'", host.windows_path(&config.path))
}

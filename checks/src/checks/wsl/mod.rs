//! Windows Subsystem for Linux.

mod clock;
mod config;
mod config_misplaced;
mod config_values;
mod data;
pub(in crate::checks) mod disk;
mod gpu_device;
mod gpu_lost;
mod installation;
mod interop;
mod kernel;
mod linux_driver;
mod loader;
mod memory;
mod network;
mod release;
mod restart_due;
mod session;
mod several_gpus;
mod several_machines;
mod version;

use super::Check;
use crate::facts::{Fact, Host, WslConfig};

pub(super) const CHECKS: &[&Check] = &[
    &version::CHECK,
    &kernel::CHECK,
    &release::CHECK,
    &installation::CHECK,
    &gpu_device::CHECK,
    &linux_driver::CHECK,
    &loader::CHECK,
    &gpu_lost::CHECK,
    &several_gpus::CHECK,
    &memory::CHECK,
    &config::CHECK,
    &config_misplaced::CHECK,
    &restart_due::CHECK,
    &config_values::CHECK,
    &data::CHECK,
    &disk::CHECK,
    &network::CHECK,
    &several_machines::CHECK,
    &clock::CHECK,
    &session::CHECK,
    &interop::CHECK,
];

/// Where WSL shows the Windows driver's libraries.
const LIBRARIES: &str = crate::wsl::DRIVER_LIBRARIES;
/// The command that shuts WSL down, so that it reads its settings at the next start.
const SHUTDOWN: &str = "wsl.exe --shutdown";

/// Whether this is WSL 2 itself, not a container in it.
fn is_wsl_itself(host: &Host) -> Fact<bool> {
    Ok(host.is_wsl2()? && !host.is_container())
}

/// Whether this is Windows or WSL 2, where `.wslconfig` matters.
fn has_wslconfig(host: &Host) -> Fact<bool> {
    Ok((host.is_windows()? || host.is_wsl2()?) && !host.is_container())
}

/// The command that opens `.wslconfig` in a Windows editor.
fn edit(host: &Host, config: &WslConfig) -> String {
    format!("notepad.exe '{}'", host.windows_path(&config.path))
}

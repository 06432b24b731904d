//! Windows Subsystem for Linux.

mod clock;
mod config;
mod data;
mod device;
mod disk;
mod effect;
mod installation;
mod interop;
mod kernel;
mod linux_driver;
mod loader;
mod lost;
mod machines;
mod memory;
mod misplaced;
mod network;
mod release;
mod session;
mod several_gpus;
mod values;
mod version;

pub(in crate::checks) use disk::limits_disk;

pub(in crate::checks) use several_gpus::is_nccl_old;

use super::Check;
use crate::facts::{Fact, Host, WslConfig};

pub(super) const CHECKS: &[&Check] = &[
    &version::CHECK,
    &kernel::CHECK,
    &release::CHECK,
    &installation::CHECK,
    &device::CHECK,
    &linux_driver::CHECK,
    &loader::CHECK,
    &lost::CHECK,
    &several_gpus::CHECK,
    &memory::CHECK,
    &config::CHECK,
    &misplaced::CHECK,
    &effect::CHECK,
    &values::CHECK,
    &data::CHECK,
    &disk::CHECK,
    &network::CHECK,
    &machines::CHECK,
    &clock::CHECK,
    &session::CHECK,
    &interop::CHECK,
];

/// Where WSL shows the libraries of Windows' driver.
const LIBRARIES: &str = "/usr/lib/wsl/lib";
/// How WSL is stopped, so that it reads its settings when it next starts.
const SHUTDOWN: &str = "wsl.exe --shutdown";

/// Whether this is WSL 2 itself, and not a container in it.
fn is_wsl_itself(host: &Host) -> Fact<bool> {
    Ok(host.is_wsl2()? && !host.is_container())
}

/// Whether this is Windows or WSL 2: then `.wslconfig` matters.
fn has_wslconfig(host: &Host) -> Fact<bool> {
    Ok((host.is_windows()? || host.is_wsl2()?) && !host.is_container())
}

/// The command that opens `.wslconfig` in an editor of Windows.
fn edit(host: &Host, config: &WslConfig) -> String {
    format!("notepad.exe '{}'", host.windows_path(&config.path))
}

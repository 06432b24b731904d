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
use crate::intent::Intent;
use crate::wsl::sizing::{Pc, Training};

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

/// What a run asks of this machine, with the defaults of `yolo train`.
fn training(intent: &Intent) -> Training {
    let number =
        |value: Option<usize>, usual: u32| value.and_then(|value| u32::try_from(value).ok()).unwrap_or(usual);
    let usual = Training::default();
    Training {
        ranks: number(Some(intent.ranks_here()), usual.ranks),
        machines: number(intent.nnodes, usual.machines),
        image_size: number(intent.image_size, usual.image_size),
        workers: number(intent.workers, usual.workers),
        cached_images: usual.cached_images,
    }
}

/// The PC as far as it matters to values of `.wslconfig`. How many processors it has WSL does not
/// tell: at least those of the virtual machine.
fn pc(host: &Host) -> Fact<Pc> {
    let processors = host.wsl_vm().map_or(1, |vm| vm.processors);
    Ok(Pc {
        memory: installed_bytes(host.windows_memory()?),
        processors,
        // Only a change of the network would need it, and wsl.exe takes its time to tell.
        windows_build: None,
        swap_disk_free: None,
    })
}

/// The command that opens `.wslconfig` in an editor of Windows.
fn edit(host: &Host, config: &WslConfig) -> String {
    format!("notepad.exe '{}'", host.windows_path(&config.path))
}

/// The memory that is installed: a whole number of gigabytes, of which Windows sees a little less.
fn installed_bytes(seen: u64) -> u64 {
    const GIB: u64 = 1 << 30;
    let whole = seen.div_ceil(GIB).saturating_mul(GIB);
    if whole.saturating_sub(seen) < GIB * 3 / 5 { whole } else { seen }
}

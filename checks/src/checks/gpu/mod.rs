//! Driver and GPUs.

mod compute_mode;
mod device_files;
mod devices;
mod driver;
mod driver_unsuited;
mod fabric;
pub(in crate::checks) mod install_driver;
mod kernel_module;
mod lost;
mod memory_errors;
mod memory_taken;
mod merge;
mod mig;
mod mixed;
pub(in crate::checks) mod pci;
mod pcie_link;
mod peer_access;
pub(in crate::checks) mod processes;
mod throttling;
mod visible_devices;

use super::Check;
use crate::facts::{Fact, Gpu, Host, NvmlState};
use crate::intent::Intent;
use crate::status::Status;

pub(super) const CHECKS: &[&Check] = &[
    &driver::CHECK,
    &device_files::CHECK,
    &devices::CHECK,
    &lost::CHECK,
    &visible_devices::CHECK,
    &mixed::CHECK,
    &compute_mode::CHECK,
    &fabric::CHECK,
    &mig::CHECK,
    &memory_taken::CHECK,
    &memory_errors::CHECK,
    &throttling::CHECK,
    &pcie_link::CHECK,
    &peer_access::CHECK,
];

/// The GPUs that answer and that the run would use: those that it names, else all.
fn of_run(host: &Host, intent: &Intent) -> Fact<Vec<Gpu>> {
    if intent.cpu || host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    let mut gpus = host.gpus()?;
    gpus.retain(|gpu| gpu.lost().is_none());
    gpus.retain(|gpu| intent.devices.is_empty() || intent.devices.contains(&gpu.index));
    Ok(gpus)
}

/// Whether this is Linux on its own hardware or in a container, as far as anything tells; WSL and
/// Windows have drivers of another kind.
pub(in crate::checks) fn is_native_linux(host: &Host) -> bool {
    host.os().is_ok_and(|os| os == "linux") && host.wsl().ok().flatten().is_none()
}

/// Whether a card is a laptop's: its name says so, or the machine does. Such a card is wired with
/// fewer lanes than its chip has, and sleeps to spare the battery.
fn is_of_laptop(host: &Host, gpu: Option<&Gpu>) -> bool {
    let name = gpu.and_then(|gpu| gpu.name().ok()).unwrap_or_default();
    // A workstation has cards named Max-Q too.
    let is_named = ["Laptop", "Mobile", "Max-Q"].iter().any(|word| name.contains(word));
    is_named && !name.contains("Workstation") || host.is_laptop()
}

/// `GPU 0 (NVIDIA A10)`
fn label(gpu: &Gpu) -> String {
    match gpu.name() {
        Ok(name) => format!("GPU {} ({name})", gpu.index),
        Err(_) => format!("GPU {}", gpu.index),
    }
}

/// What makes a card unusable stops a run that names it, and a machine that has no other.
fn stops(host: &Host, intent: &Intent, gpu: &Gpu) -> Status {
    let only = host.gpus().is_ok_and(|gpus| gpus.len() == 1);
    if only || intent.devices.contains(&gpu.index) { Status::Error } else { Status::Warning }
}

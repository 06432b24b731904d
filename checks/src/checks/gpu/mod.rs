//! The driver and the GPUs.

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

/// The working GPUs that the run uses: those it names, else all.
fn of_run(host: &Host, intent: &Intent) -> Fact<Vec<Gpu>> {
    if intent.cpu || host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    let mut gpus = host.gpus()?;
    gpus.retain(|gpu| gpu.lost().is_none());
    gpus.retain(|gpu| intent.devices.is_empty() || intent.devices.contains(&gpu.index));
    Ok(gpus)
}

/// Whether this is native Linux or a container on it, as far as known; WSL and Windows have other
/// drivers.
pub(in crate::checks) fn is_native_linux(host: &Host) -> bool {
    host.os().is_ok_and(|os| os == "linux") && host.wsl().ok().flatten().is_none()
}

/// Whether this is a laptop GPU, by its name or the machine. Such a GPU has fewer PCIe lanes than its
/// chip supports, and sleeps to save power.
fn is_of_laptop(host: &Host, gpu: Option<&Gpu>) -> bool {
    let name = gpu.and_then(|gpu| gpu.name().ok()).unwrap_or_default();
    // Some workstation cards are named Max-Q too.
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

/// An unusable card stops a run that uses it, and any run on a machine without other cards.
fn stops(host: &Host, intent: &Intent, gpu: &Gpu) -> Status {
    let only = host.gpus().is_ok_and(|gpus| gpus.len() == 1);
    if only || intent.devices.contains(&gpu.index) { Status::Error } else { Status::Warning }
}

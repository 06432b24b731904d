//! The GPUs of a run: which they are, how messages name them, and whether one stops the run.

use crate::facts::{Fact, Gpu, Host, NvmlState};
use crate::intent::Intent;
use crate::status::Status;

/// The working GPUs that the run uses: those it names, else all.
pub(super) fn of_run(host: &Host, intent: &Intent) -> Fact<Vec<Gpu>> {
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
pub(super) fn is_of_laptop(host: &Host, gpu: Option<&Gpu>) -> bool {
    let name = gpu.and_then(|gpu| gpu.name().ok()).unwrap_or_default();
    // Some workstation cards are named Max-Q too.
    let is_named = ["Laptop", "Mobile", "Max-Q"].iter().any(|word| name.contains(word));
    is_named && !name.contains("Workstation") || host.is_laptop()
}

/// `GPU 0 (NVIDIA A10)`
pub(super) fn label(gpu: &Gpu) -> String {
    match gpu.name() {
        Ok(name) => format!("GPU {} ({name})", gpu.index),
        Err(_) => format!("GPU {}", gpu.index),
    }
}

/// An unusable card stops a run that uses it, and any run on a machine without other cards.
pub(super) fn stops(host: &Host, intent: &Intent, gpu: &Gpu) -> Status {
    let only = host.gpus().is_ok_and(|gpus| gpus.len() == 1);
    if only || intent.devices.contains(&gpu.index) { Status::Error } else { Status::Warning }
}

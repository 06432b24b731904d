//! The GPUs of a run: which they are, how messages name them, and whether one stops the run.

use yolo_base::env::CUDA_VISIBLE_DEVICES;
use yolo_base::visible_devices::Visible;

use super::visible_devices::seen;
use crate::facts::{Fact, Gpu, Host, NvmlState, pci_address};
use crate::intent::Intent;
use crate::status::Status;

/// The working GPUs that the run uses: those it names, else all that are its user's.
pub(super) fn of_run(host: &Host, intent: &Intent) -> Fact<Vec<Gpu>> {
    if intent.cpu || host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    let mut gpus = chosen(host, intent, host.gpus()?);
    gpus.retain(|gpu| gpu.lost().is_none());
    Ok(gpus)
}

/// The GPUs that the run names. If it names none, those of a batch job are the ones that CUDA_VISIBLE_DEVICES shows: the
/// others are somebody else's.
pub(in crate::checks) fn chosen(host: &Host, intent: &Intent, mut gpus: Vec<Gpu>) -> Vec<Gpu> {
    if !intent.devices.is_empty() {
        gpus.retain(|gpu| intent.devices.contains(&gpu.index));
        return gpus;
    }
    of_job(host, gpus)
}

/// All cards, or those of the batch job that this shell is in.
pub(super) fn of_job(host: &Host, mut gpus: Vec<Gpu>) -> Vec<Gpu> {
    let of_job = || {
        let variables = [CUDA_VISIBLE_DEVICES, "SLURM_STEP_GPUS", "SLURM_JOB_GPUS"];
        let values = variables.into_iter().find_map(|name| host.env(name).ok().flatten());
        // Slurm's own lists are of the whole node, so they say nothing where only the job's cards are seen.
        values.filter(|value| value.split(',').count() < gpus.len())
    };
    let value = host.job().and_then(|_| of_job()).unwrap_or_default();
    // If a lost card's number is unknown, so are the others'.
    if gpus.iter().any(|gpu| !gpu.is_numbered()) {
        return gpus;
    }
    if let Visible { devices, flaw: None } = seen(&value, &gpus)
        && !devices.is_empty()
    {
        gpus.retain(|gpu| devices.contains(&gpu.index));
    }
    gpus
}

/// The addresses of cards of a batch system's node that are not in this job: they are somebody else's.
pub(super) fn of_others(host: &Host) -> Vec<String> {
    let all = host.gpus().unwrap_or_default();
    let own = of_job(host, all.clone());
    let others = all.iter().filter(|gpu| own.iter().all(|own| own.index != gpu.index));
    others.filter_map(|gpu| pci_address(&gpu.pci_bus_id().ok()?)).collect()
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

/// An unusable card stops a run that names it, and any run that can use no other card.
pub(super) fn stops(host: &Host, intent: &Intent, gpu: &Gpu) -> Status {
    let is_only = host
        .gpus()
        .is_ok_and(|gpus| matches!(&chosen(host, intent, gpus)[..], [only] if only.index == gpu.index));
    if is_only || intent.devices.contains(&gpu.index) { Status::Error } else { Status::Warning }
}

/// Whether a card is of a superchip of Grace, in a rack whose switches have machines of their own. The names contain those
/// of cards on server boards.
pub(in crate::checks) fn is_of_grace(name: &str) -> bool {
    ["GH200", "GB200", "GB300"].iter().any(|kind| name.contains(kind))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_is_judged_by_its_own_cards() {
        let indices = |env: serde_json::Value| {
            let card = json!({ "name": "NVIDIA A40" });
            let nvml = json!({ "driver_version": "580.95.05", "devices": [card, card, card] });
            let recording = json!({ "version": 1, "os": "linux", "env": env, "nvml": nvml });
            let host = Host::from_value(recording).unwrap().0;
            let gpus = of_run(&host, &Intent::default()).unwrap();
            gpus.iter().map(|gpu| gpu.index).collect::<Vec<_>>()
        };
        assert_eq!(indices(json!({ "SLURM_JOB_ID": "9", "CUDA_VISIBLE_DEVICES": "2" })), [2]);
        assert_eq!(indices(json!({ "SLURM_JOB_ID": "9", "CUDA_VISIBLE_DEVICES": "7" })), [0, 1, 2]);
        assert_eq!(indices(json!({ "SLURM_JOB_ID": "9" })), [0, 1, 2]);
        assert_eq!(indices(json!({ "CUDA_VISIBLE_DEVICES": "2" })), [0, 1, 2]);
    }
}

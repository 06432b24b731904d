//! Which libtorch and driver suit this machine, and how to replace the installed ones.

use crate::checks::gpu::chosen;
use crate::facts::{Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::libtorch_builds::{self, Build};
use crate::remedies::{image, install_driver, rented};

/// The only version of libtorch that the trainer works with: each tch release supports one.
pub(super) const LIBTORCH: [u32; 3] = [2, 11, 0];

/// How to get a newer driver on this machine: a description and commands.
pub(super) fn newer_driver(host: &Host) -> (&'static str, Vec<String>) {
    if host.is_wsl2().unwrap_or(false) {
        let text = "update the NVIDIA driver on Windows from https://www.nvidia.com/drivers, then run \
                    `wsl --shutdown` there; do not install one inside WSL";
        return (text, vec!["wsl.exe --shutdown".to_owned()]);
    }
    if host.is_windows().unwrap_or(false) {
        return ("update the NVIDIA driver from https://www.nvidia.com/drivers and restart", Vec::new());
    }
    if matches!(host.place(), Place::Colab | Place::Kaggle) {
        return ("start a new session: only the service can change the driver of its machines", Vec::new());
    }
    if host.job().is_some() {
        return ("ask the administrator of this node to update its NVIDIA driver", Vec::new());
    }
    if let Some(rental) = host.rental() {
        return (rented::newer_driver(rental), Vec::new());
    }
    if host.place() == Place::Pod {
        return ("ask the administrator of the cluster to update the NVIDIA driver of this node", Vec::new());
    }
    if host.is_container() {
        return ("update the NVIDIA driver on the container's host and restart it", Vec::new());
    }
    if image::of(host).is_some_and(|image| image.has_driver() != Some(false)) {
        let commands = ["sudo rpm-ostree upgrade", "sudo reboot"].map(ToOwned::to_owned).to_vec();
        return ("update the system, whose image brings the NVIDIA driver, and restart", commands);
    }
    let mut commands = install_driver::install_newest(host);
    if !commands.is_empty() {
        commands.push("sudo reboot".to_owned());
    }
    (install_driver::advice_newest(host).unwrap_or("update the NVIDIA driver and restart"), commands)
}

/// The build for the driver and the run's GPUs, if they are known and one supports them.
pub(super) fn fitting(host: &Host, intent: &Intent) -> Option<&'static Build> {
    // CUDA builds exist only for Linux on x86-64.
    if host.os().ok()? != "linux" || host.arch().is_ok_and(|arch| arch != "x86_64") {
        return None;
    }
    let gpus = chosen(host, intent, host.gpus().ok()?).into_iter().filter(|gpu| gpu.lost().is_none());
    let cards: Vec<_> = gpus.map(|gpu| gpu.capability().ok()).collect::<Option<_>>()?;
    let driver = host.driver_version().ok()?.major();
    libtorch_builds::best_for(&cards, driver).filter(|_| !cards.is_empty())
}

/// The commands that replace the libtorch in use with another build.
pub(super) fn install(host: &Host, build: &Build, finding: Finding) -> Finding {
    // LIBTORCH takes precedence over what setup installs.
    let named = host.named_libtorch().ok().flatten().is_some();
    let unset = "unset LIBTORCH";
    let finding = named.then_some(unset).into_iter().fold(finding, Finding::command);
    finding.command(format!("yolo setup --libtorch {}", build.name))
}

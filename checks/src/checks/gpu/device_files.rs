//! Whether CUDA can start where NVML works. CUDA also needs /dev/nvidia-uvm, which `nvidia-modprobe`
//! creates on first use, and a working module behind it. This does not apply to WSL, nor to other guests of Windows
//! that use its driver.

use super::uvm_closed::DEVICE;
use crate::checks::{Answer, Check};
use crate::facts::{Family, Host, NvmlState, Place};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::fit::is_of_service;
use crate::remedies::removed_kernel::start_new;
use crate::remedies::restart::{restart, restart_container};
use crate::remedies::start_container::{Start, start_with};

pub(super) static CHECK: Check = Check {
    question: "Can CUDA use the GPUs that the driver reports?",
    reports: &["gpu.uvm-missing", "gpu.uvm-closed", "gpu.uvm-kaslr", "gpu.suspended"],
    preflight: true,
    run,
};

/// What the kernel and systemd-sleep log after suspend and hibernation, in old and new versions.
const WOKE: [&str; 6] = [
    "PM: suspend exit",
    "PM: hibernation: hibernation exit",
    "PM: hibernation exit",
    "PM: Finishing wakeup",
    "System returned from sleep",
    "Waking up from system sleep state",
];

/// The setuid program with which CUDA makes its device files.
const MODPROBE: &str = "/usr/bin/nvidia-modprobe";

fn run(host: &Host, intent: &Intent) -> Answer {
    if !intent.cpu && host.nvml_state()? == NvmlState::Failed(9) && are_missing(host) {
        return Ok(vec![never_made(host)]);
    }
    if intent.cpu
        || !super::is_native_linux(host)
        || host.has_gpu_of_windows_host()
        || host.nvml_state()? != NvmlState::Ready
        || host.gpus()?.is_empty()
    {
        return Ok(Vec::new());
    }
    // The message of the known issue in the release notes of CUDA 13.2.
    let failed = host.kernel_lines(&["request_free_mem_region() err", "devmem_alloc_pagemap"]);
    if let Some(line) = failed.into_iter().next() {
        return Ok(vec![kaslr(line)]);
    }
    let is_there = host.exists(DEVICE);
    if is_there == Ok(false) {
        return Ok(missing(host).into_iter().collect());
    }
    if let Some(finding) = super::uvm_closed::find(host) {
        return Ok(vec![finding]);
    }
    // A card that was lost has another finding, which says so if that happened in the machine's sleep.
    if host.gpus()?.iter().any(|gpu| gpu.lost().is_some()) {
        return is_there.map(|_| Vec::new());
    }
    match (host.kernel_lines(&WOKE).last(), is_there) {
        // Nodes of clusters and machines of services are not suspended.
        (Some(_), _) if host.job().is_some() || host.place() == Place::Pod || is_of_service(host) => {
            Ok(Vec::new())
        }
        (Some(line), _) => Ok(vec![super::suspended::finding(host, line)]),
        (None, Err(why)) => Err(why),
        (None, Ok(_)) => Ok(Vec::new()),
    }
}

fn kaslr(line: String) -> Finding {
    let title = "the driver's nvidia-uvm module failed to start, so CUDA does not work";
    Finding::new("gpu.uvm-kaslr", title)
        .seen(line)
        .command("echo 'options nvidia_uvm uvm_disable_hmm=1' | sudo tee /etc/modprobe.d/uvm.conf")
        .command("sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm")
}

/// Whether the module is loaded on this machine, and even the device file that NVML needs does not exist.
pub(super) fn are_missing(host: &Host) -> bool {
    host.place() == Place::Machine
        && matches!(host.driver_module_version(), Ok(Some(_)))
        && host.exists("/dev/nvidiactl") == Ok(false)
}

/// NVML calls a driver without device files "not loaded". A graphical system, nvidia-persistenced or nvidia-modprobe make
/// them; on a server that has none of these, nobody does.
fn never_made(host: &Host) -> Finding {
    let title = "the NVIDIA driver's module is loaded, but its device files (/dev/nvidiactl, /dev/nvidia0, …) do not exist";
    let finding = Finding::new("gpu.uvm-missing", title)
        .because(
            "a graphical system, nvidia-persistenced or nvidia-modprobe makes these files, and none of them has: every program \
             then finds the driver \"not loaded\"",
        )
        .remedy("install nvidia-modprobe, with which programs make the device files, and make them now");
    if host.family() == Some(Family::NixOs) {
        let finding = finding
            .remedy(
                "let the rules of NixOS make the files: set `services.xserver.videoDrivers = [ \"nvidia\" ];` in configuration.nix, \
                 also without a graphical system, apply it, and restart",
            )
            .command("sudo nixos-rebuild switch");
        return restart(host, finding);
    }
    let package = modprobe_package(host);
    // Arch has the program in the package of nvidia-smi.
    if package.is_none() && host.family() != Some(Family::Arch) {
        // As root, the driver's libraries make the files themselves.
        return finding
            .remedy(
                "have root start nvidia-smi, which makes the files, now and whenever the machine starts; it makes all but CUDA's, \
                 for which root also loads the module nvidia-uvm and starts a CUDA program once",
            )
            .command("sudo nvidia-smi")
            .command("sudo modprobe nvidia-uvm");
    }
    let cards = host.folder("/proc/driver/nvidia/gpus").ok().flatten().map_or(1, |cards| cards.len().max(1));
    let files: Vec<String> = (0..cards).map(|card| format!("-c={card}")).collect();
    let finding = package.into_iter().fold(finding, Finding::command);
    finding.command(format!("sudo nvidia-modprobe {} -u", files.join(" ")))
}

/// The command that installs the setuid program with which CUDA makes its device files.
fn modprobe_package(host: &Host) -> Option<String> {
    host.package_command([
        "sudo apt install nvidia-modprobe",
        "sudo dnf install nvidia-modprobe",
        "sudo zypper install nvidia-modprobe",
        "",
    ])
}

fn missing(host: &Host) -> Option<Finding> {
    let title = format!("nvidia-smi works, but CUDA's device file {DEVICE} does not exist");
    let finding = Finding::new("gpu.uvm-missing", title);
    // Apptainer shows the machine's own device files.
    if host.place() == Place::Apptainer {
        return Some(
            finding
                .remedy("have the module nvidia-uvm loaded and its device file made on the machine itself")
                .command("sudo modprobe nvidia-uvm && sudo nvidia-modprobe -u -c=0"),
        );
    }
    if host.family() == Some(Family::NixOs) && !host.is_container() {
        return Some(
            finding
                .because("the open kernel module of NixOS does not bring nvidia-uvm, which CUDA needs, with it when it is loaded")
                .remedy("load the module now, and add `boot.kernelModules = [ \"nvidia-uvm\" ];` to configuration.nix so that it stays")
                .command("sudo modprobe nvidia-uvm"),
        );
    }
    if host.is_container() && is_unloaded_on_host(host) {
        let finding = finding
            .because(
                "the file is made when the host loads the module nvidia-uvm, which nothing has done since it started: \
                 nvidia-smi does not need it, but CUDA in the container does",
            )
            .remedy(
                "load the module on the host, now and whenever it starts, and write its CDI specification again if it has one; \
                 then start the container again",
            )
            .command("sudo nvidia-modprobe -u -c=0")
            .command("echo nvidia-uvm | sudo tee /etc/modules-load.d/nvidia-uvm.conf");
        let finding = match host.place() {
            Place::Podman => finding.command("sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"),
            Place::Lxc => return Some(start_with(host, finding, Start::Gpus(1))),
            // This remedy is for the administrator of the node.
            Place::Pod => return Some(finding),
            _ => finding,
        };
        return Some(restart_container(host, finding));
    }
    if host.is_container() {
        let remedy = "start the container with --gpus all, or with the missing device files";
        let finding = start_with(host, finding.remedy(remedy), Start::Gpus(1));
        let program = match host.place() {
            _ if host.rental().is_some() || host.workshop().is_some() => return Some(finding),
            // Visual Studio Code starts it by a file, of which the remedy speaks.
            _ if host.env("REMOTE_CONTAINERS").ok().flatten().is_some() => return Some(finding),
            Place::Docker => "docker",
            Place::Podman => "podman",
            _ => return Some(finding),
        };
        return Some(
            finding
                .remedy(
                    "start the container with the GPUs; if it already was, the CDI specification of the host was written before its module \
                     nvidia-uvm was loaded, and lacks the file: write it again, or start the container with the file by its name",
                )
                .command("sudo nvidia-modprobe -u -c=0 && sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml  # on the host")
                .command(format!("{program} run --device /dev/nvidia-uvm --device /dev/nvidia-uvm-tools …  # on the host")),
        );
    }
    // An update has removed the modules of the running kernel, so nvidia-uvm can no longer be loaded.
    if let Ok(kernel) = host.kernel_release()
        && host.exists(&format!("/lib/modules/{kernel}")) == Ok(false)
    {
        let finding = finding.because(format!(
            "an update has removed the modules of the running kernel {kernel}, so nvidia-uvm, which makes \
                 that file, cannot be loaded"
        ));
        return Some(start_new(host, finding));
    }
    // With this setuid program, the first CUDA program creates the device file by itself.
    let makes_itself = host.exists(MODPROBE).unwrap_or(false);
    if makes_itself {
        return without_setuid(host, finding);
    }
    let package = modprobe_package(host);
    Some(package.into_iter().fold(finding, Finding::command).command("sudo nvidia-modprobe -u -c=0"))
}

/// The program is there, and an ordinary user gets no rights from it, so that it makes no files: a hardened system, or one
/// that was copied, has lost the bit.
fn without_setuid(host: &Host, finding: Finding) -> Option<Finding> {
    let stat = host.stat(MODPROBE).ok().flatten()?;
    let text = stat.mode?;
    let mode = u32::from_str_radix(&text, 8).ok()?;
    if mode & 0o4000 != 0 || host.user().is_ok_and(|user| user.uid == Some(0)) {
        return None;
    }
    Some(
        finding
            .seen(format!("{MODPROBE} has mode {text}"))
            .because(
                "nvidia-modprobe makes this file for the first CUDA program, for which it has to run as root (setuid, mode 4755); here it \
                 has lost that",
            )
            .remedy(
                "give the program its mode again; or, where programs must not have it, load the module nvidia-uvm whenever the machine \
                 starts and make the file as root (`echo nvidia-uvm | sudo tee /etc/modules-load.d/nvidia-uvm.conf`)",
            )
            .command(format!("sudo chmod u+s {MODPROBE}"))
            .command("sudo nvidia-modprobe -u -c=0"),
    )
}

/// Whether the kernel, which containers share with their host, is known to have no such driver.
fn is_unloaded_on_host(host: &Host) -> bool {
    let drivers = host.text("/proc/devices").ok().flatten();
    drivers.is_some_and(|drivers| {
        let has = |name: &str| drivers.split_whitespace().any(|word| word == name);
        (has("nvidia") || has("nvidia-frontend") || has("nvidiactl")) && !has("nvidia-uvm")
    })
}

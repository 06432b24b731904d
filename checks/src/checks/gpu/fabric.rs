//! Whether NVIDIA Fabric Manager is running where NVSwitch connects the GPUs. Without it nvidia-smi
//! shows all GPUs, but CUDA does not start on any (pytorch#35710). In containers and virtual
//! machines this is the host's responsibility.

use crate::checks::{Answer, Check};
use crate::facts::{Fact, Host, NvmlState};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::service;

pub(super) static CHECK: Check = Check {
    question: "Is Fabric Manager running where NVSwitch connects the GPUs?",
    reports: &["gpu.fabric-manager"],
    preflight: true,
    run,
};

const DEVICES: &str = "/sys/bus/pci/devices";
const SERVICE: &str = "nvidia-fabricmanager";
/// Where packages install the service.
const UNITS: [&str; 2] = [
    "/usr/lib/systemd/system/nvidia-fabricmanager.service",
    "/lib/systemd/system/nvidia-fabricmanager.service",
];

fn run(host: &Host, intent: &Intent) -> Answer {
    if intent.cpu
        || !super::is_native_linux(host)
        || host.is_container()
        || host.nvml_state()? != NvmlState::Ready
        // NVSwitch connects the modules of a server board, never a single card.
        || host.gpus()?.len() < 2
        || !has_switch(host)?
    {
        return Ok(Vec::new());
    }
    // Without systemd the state is unknown.
    let Some(answer) = host.command(&["systemctl", "is-active", SERVICE])? else { return Ok(Vec::new()) };
    let state = answer.text().trim().to_owned();
    if !matches!(state.as_str(), "inactive" | "failed" | "unknown") {
        return Ok(Vec::new());
    }
    let title = "NVSwitch connects the GPUs, but NVIDIA Fabric Manager is not running: CUDA will not start";
    let finding =
        Finding::new("gpu.fabric-manager", title).seen(format!("systemctl is-active {SERVICE}: {state}"));
    let installed = if state == "failed" { Some(true) } else { is_installed(host) };
    let finding = match installed {
        Some(true) => finding,
        Some(false) => package(host).into_iter().fold(
            finding.remedy("install the service in the driver's version, and start it"),
            Finding::command,
        ),
        None => package(host).into_iter().fold(
            finding.remedy("install the service in the driver's version if it is missing, and start it"),
            Finding::command,
        ),
    };
    let finding = finding.command(service::enable(host, SERVICE));
    Ok(vec![match state.as_str() {
        "failed" => finding.command(format!("journalctl -b -u {SERVICE}")),
        _ => finding,
    }])
}

/// Whether NVSwitch devices exist, by the driver's device file or by their PCI class: an NVIDIA bridge
/// of class 0680 (other).
fn has_switch(host: &Host) -> Fact<bool> {
    if host.exists("/dev/nvidia-nvswitch0") == Ok(true)
        || host.exists("/dev/nvidia-nvswitchctl") == Ok(true)
        || !host.kernel_lines(&["nvidia-nvswitch"]).is_empty()
    {
        return Ok(true);
    }
    let devices = match host.folder(DEVICES) {
        Ok(devices) => devices.unwrap_or_default(),
        // If the bus is unknown, the names of the cards show that there are none.
        Err(why) => return if may_have_switch(host)? { Err(why) } else { Ok(false) },
    };
    let file = |device: &str, name: &str| {
        host.text(&format!("{DEVICES}/{device}/{name}")).ok().flatten().unwrap_or_default()
    };
    Ok(devices.iter().any(|device| {
        file(device, "vendor").trim() == "0x10de" && file(device, "class").trim().starts_with("0x0680")
    }))
}

/// GPU models on boards with NVSwitch.
fn may_have_switch(host: &Host) -> Fact<bool> {
    const KINDS: [&str; 5] = ["SXM", "HBM3", "H200", "B200", "B300"];
    let names: Vec<String> = host.gpus()?.iter().filter_map(|gpu| gpu.name().ok()).collect();
    Ok(names.len() >= 8 && names.iter().all(|name| KINDS.iter().any(|kind| name.contains(kind))))
}

fn is_installed(host: &Host) -> Option<bool> {
    let found: Vec<bool> = UNITS.iter().filter_map(|unit| host.exists(unit).ok()).collect();
    (!found.is_empty()).then(|| found.contains(&true))
}

/// The command that installs it: on Ubuntu and Debian the package name contains the driver branch.
fn package(host: &Host) -> Option<String> {
    let branch = host.driver_version().ok()?.major();
    host.package_command([
        &format!("sudo apt install nvidia-fabricmanager-{branch}"),
        "sudo dnf install nvidia-fabric-manager",
        "sudo zypper install nvidia-fabric-manager",
        "",
    ])
    .filter(|command| !command.is_empty())
}

//! Whether a laptop's GPU gets the power that its CPU does not need: the driver's service nvidia-powerd decides
//! that, and some distributions install it without starting it.

use crate::checks::{Answer, Check};
use crate::facts::{Family, Gpu, Host, NvmlState};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::service;

pub(super) static CHECK: Check = Check {
    question: "Does a laptop's GPU get its full power?",
    reports: &["gpu.boost-off"],
    preflight: false,
    run,
};

const SERVICE: &str = "nvidia-powerd";
/// Where a package or an administrator puts it.
const UNITS: [&str; 3] = ["/usr/lib/systemd/system", "/lib/systemd/system", "/etc/systemd/system"];
/// Dynamic Boost exists since the generation of Ampere.
const FIRST: (u32, u32) = (8, 6);

fn run(host: &Host, intent: &Intent) -> Answer {
    if !super::is_native_linux(host) || host.is_container() || host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    let gpus = super::of_run(host, intent)?;
    let boosts = |gpu: &&Gpu| {
        gpu.name().is_ok_and(|name| name.contains("Laptop GPU"))
            && gpu.capability().is_ok_and(|of| of >= FIRST)
    };
    let Some(gpu) = gpus.iter().find(boosts) else { return Ok(Vec::new()) };
    let is_there = |folder: &&str| host.exists(&format!("{folder}/{SERVICE}.service"));
    if UNITS.iter().all(|folder| is_there(folder) == Ok(false)) {
        return Ok(without_unit(host, gpu).into_iter().collect());
    }
    if UNITS.iter().all(|folder| is_there(folder) != Ok(true)) {
        return Ok(Vec::new());
    }
    let state = host.command(&["systemctl", "is-active", SERVICE])?.map(|output| output.text());
    if state.is_none_or(|state| state.trim() != "inactive") {
        return Ok(Vec::new());
    }
    // A service that is enabled but does not run was stopped until the next restart, as the advice about a power limit says.
    let enabled = host.command(&["systemctl", "is-enabled", SERVICE]).ok().flatten();
    if enabled.is_some_and(|output| output.text().trim() == "enabled") {
        return Ok(skipped(host, gpu).into_iter().collect());
    }
    let title =
        format!("{} stays at its base power: the service {SERVICE} is not running", super::label(gpu));
    Ok(vec![Finding::new("gpu.boost-off", title).command(service::enable(host, SERVICE))])
}

/// The driver's packages for Ubuntu 24.04 and older bring the program, and its service among the documentation only.
fn without_unit(host: &Host, gpu: &Gpu) -> Option<Finding> {
    let is_of_ubuntu = matches!(host.family(), Some(Family::Ubuntu | Family::OnUbuntu));
    if !is_of_ubuntu || host.exists("/usr/bin/nvidia-powerd") != Ok(true) {
        return None;
    }
    let branch = host.driver_version().ok()?.major();
    let folder = format!("/usr/share/doc/nvidia-kernel-common-{branch}");
    if host.exists(&format!("{folder}/{SERVICE}.service")) != Ok(true) {
        return None;
    }
    let title =
        format!("{} stays at its base power: the service {SERVICE} is not installed", super::label(gpu));
    let finding = Finding::new("gpu.boost-off", title)
        .seen(format!("{folder}/{SERVICE}.service"))
        .because(
            "the driver's package has the program that gives the card more power, but puts its service file in /usr/share/doc, \
             where systemd does not look",
        )
        .remedy("put the service and its permission to use D-Bus in their places, and start it now and whenever the machine starts")
        .command(format!("sudo cp {folder}/{SERVICE}.service /etc/systemd/system/"));
    // The permission is in another package than the service.
    let permission = [folder.clone(), format!("/usr/share/doc/nvidia-driver-{branch}")]
        .into_iter()
        .map(|folder| format!("{folder}/nvidia-dbus.conf"))
        .find(|file| host.exists(file) == Ok(true));
    let finding = match permission {
        Some(file) => finding.command(format!("sudo cp {file} /etc/dbus-1/system.d/")),
        None => finding,
    };
    Some(finding.command("sudo systemctl daemon-reload").command(service::enable(host, SERVICE)))
}

/// A service that is to start and was skipped at boot, because the device files were not there yet.
fn skipped(host: &Host, gpu: &Gpu) -> Option<Finding> {
    if !host.has_systemd() || host.family() == Some(Family::NixOs) {
        return None;
    }
    let shown = host
        .command(&["systemctl", "show", SERVICE, "--property=ConditionResult,ConditionTimestampMonotonic"])
        .ok()??;
    let has = |line: &str| shown.text().lines().any(|one| one.trim() == line);
    // A service that was never tried has the same result, and no time.
    if !has("ConditionResult=no") || has("ConditionTimestampMonotonic=0") {
        return None;
    }
    let title =
        format!("{} stays at its base power: the service {SERVICE} was skipped at boot", super::label(gpu));
    Some(
        Finding::new("gpu.boost-off", title)
            .seen("systemctl show nvidia-powerd: ConditionResult=no")
            .because("the service starts only if the driver's device files are there, which they were not yet when the machine started")
            .remedy("start the service now, and let nvidia-persistenced make the device files early, whenever the machine starts")
            .command("sudo systemctl enable --now nvidia-persistenced")
            .command(format!("sudo systemctl restart {SERVICE}")),
    )
}

//! Whether a GPU is throttled right now: by heat, its power supply, or a lowered power limit.
//! Counters of past events are ignored.

use crate::checks::{Answer, Check};
use crate::facts::{Gpu, Host};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::power_limit::SPARING;

pub(super) static CHECK: Check = Check {
    question: "Are the GPUs running at full speed?",
    reports: &["gpu.power-brake", "gpu.hot", "gpu.power-cap"],
    preflight: true,
    run,
};

/// Bits of the clock event reasons in nvml.h.
const POWER_CAP: u64 = 0x4;
const HARDWARE: u64 = 0x8;
const HEAT: u64 = 0x20 | 0x40;
const POWER_BRAKE: u64 = 0x80;

fn run(host: &Host, intent: &Intent) -> Answer {
    let gpus = super::of_run(host, intent)?;
    Ok(super::merge::merge_alike(gpus.iter().flat_map(|gpu| throttling(host, gpu)).collect()))
}

fn throttling(host: &Host, gpu: &Gpu) -> Vec<Finding> {
    let who = super::label(gpu);
    // Many drivers in WSL do not report this.
    let reasons = gpu.throttle_reasons().unwrap_or_default();
    let mut findings = Vec::new();
    let heat = reasons & HEAT != 0;
    if heat {
        findings.push(super::heat::finding(host, gpu, reasons));
    }
    if reasons & POWER_BRAKE != 0 || reasons & HARDWARE != 0 && !heat {
        let title = match reasons & POWER_BRAKE {
            0 => format!("{who} is throttled by its hardware (HW Slowdown), because of power or heat"),
            _ => format!("{who} is throttled by its power supply (HW Power Brake)"),
        };
        findings.push(
            Finding::new("gpu.power-brake", title)
                .command(format!("nvidia-smi -q -d PERFORMANCE -i {}", gpu.index)),
        );
    }
    findings.extend(power_cap(host, gpu, reasons));
    findings
}

fn power_cap(host: &Host, gpu: &Gpu, reasons: u64) -> Option<Finding> {
    let (limit, usual) = (gpu.number("power_limit").ok()?, gpu.number("power_limit_default").ok()?);
    // Lower limits slow training noticeably.
    if limit as f64 >= usual as f64 * SPARING {
        return None;
    }
    let now = if reasons & POWER_CAP != 0 { ", which throttles the card now" } else { "" };
    let (limit, usual) = (limit / 1000, usual / 1000);
    let title = format!("{} has a power limit of {limit} W instead of {usual} W{now}", super::label(gpu));
    let finding = Finding::new("gpu.power-cap", title);
    if super::is_of_laptop(host, Some(gpu)) {
        return Some(of_laptop(host, finding));
    }
    let finding = match host.is_own_machine() {
        true => finding,
        false => finding.remedy("raise the limit, unless it was lowered on purpose"),
    };
    Some(finding.command(format!("sudo nvidia-smi -i {} -pl {usual}", gpu.index)))
}

/// The driver of a laptop refuses `nvidia-smi -pl`: its firmware, its charger and Dynamic Boost decide the limit.
fn of_laptop(host: &Host, finding: Finding) -> Finding {
    let supplies = host.folder("/sys/class/power_supply").ok().flatten().unwrap_or_default();
    let is_plugged_in = supplies.iter().any(|name| {
        let online = host.text(&format!("/sys/class/power_supply/{name}/online")).ok().flatten();
        !name.starts_with("BAT") && online.is_some_and(|text| text.trim() == "1")
    });
    let service = || host.command(&["systemctl", "is-active", "nvidia-powerd"]).ok().flatten();
    let finding = finding
        .because("a laptop's firmware, its charger and its power profile decide how much power the card may use")
        .remedy("plug in the laptop's own charger (not a weaker one for USB-C), and choose the power profile for performance");
    let has_systemd = host.has_systemd();
    match is_plugged_in && has_systemd && service().is_some_and(|state| state.text().trim() == "active") {
        true => finding
            .remedy(
                "choose the power profile for performance, and use the laptop's own charger, not a weaker one for USB-C; if the \
                 limit stays, compare without nvidia-powerd, which holds it down on some laptops: `sudo systemctl stop \
                 nvidia-powerd` stops it until the next start",
            )
            .command("powerprofilesctl set performance"),
        false => finding.command("powerprofilesctl set performance"),
    }
}

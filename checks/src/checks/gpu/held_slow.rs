//! Whether a GPU that computes is held in a state that saves power. A busy card goes to P0, P2 or P3, where its memory has
//! its full clock; in P5 or P8 it has a fraction, and training takes many times as long.

use super::processes;
use crate::checks::{Answer, Check};
use crate::facts::{Gpu, Host};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::restart::restart;

pub(super) static CHECK: Check = Check {
    question: "Do busy GPUs run at their full clocks?",
    reports: &["gpu.held-slow"],
    preflight: false,
    run,
};

/// The states of idle cards, as NVML names them, and as nvidia-smi does.
const SAVING: [(&str, &str); 5] =
    [("Five", "P5"), ("Eight", "P8"), ("Ten", "P10"), ("Twelve", "P12"), ("Fifteen", "P15")];
/// Percent of the time. A desktop in P8 reaches half of it with ease.
const BUSY: u64 = 90;
/// The clocks were limited by hand: bit 0x2 of the clock event reasons in nvml.h.
const BY_HAND: u64 = 0x2;
/// Slowed down by heat or power, about which another check says more.
const OTHERWISE: u64 = 0x8 | 0x20 | 0x40 | 0x80;

fn run(host: &Host, intent: &Intent) -> Answer {
    let gpus = super::of_run(host, intent)?;
    Ok(super::merge::merge_alike(gpus.iter().filter_map(|gpu| held(host, gpu)).collect()))
}

fn held(host: &Host, gpu: &Gpu) -> Option<Finding> {
    let state = gpu.text("performance_state").ok()?;
    let (_, state) = SAVING.iter().find(|(name, _)| *name == state)?;
    let busy = gpu.number("utilization").ok().filter(|percent| *percent >= BUSY)?;
    let reasons = gpu.throttle_reasons().unwrap_or_default();
    if reasons & OTHERWISE != 0 || processes::computing(gpu).is_empty() {
        return None;
    }
    let title = format!(
        "{} computes {busy} % of the time, but is held in the saving state {state}",
        super::label(gpu)
    );
    let finding = Finding::new("gpu.held-slow", title);
    if host.job().is_some() {
        return Some(restart(host, finding));
    }
    let look = format!("nvidia-smi -q -d PERFORMANCE,CLOCK -i {}", gpu.index);
    let finding = finding.command(look);
    if super::is_of_laptop(host, Some(gpu)) {
        return Some(finding.remedy(
            "plug in the laptop's own charger (not a weaker one for USB-C) and choose the power profile for performance, also in the \
             maker's program; if the state stays, restart with the charger plugged in; compare without nvidia-powerd \
             (`sudo systemctl stop nvidia-powerd`), which holds it down on some laptops",
        ));
    }
    if reasons & BY_HAND == 0 {
        return Some(finding);
    }
    let finding = finding.seen("the clocks were limited by hand (Applications Clocks Setting)");
    Some(["rgc", "rmc", "rac"].into_iter().fold(finding, |finding, option| {
        finding.command(format!("sudo nvidia-smi -i {} -{option}", gpu.index))
    }))
}

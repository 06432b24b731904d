//! Whether a laptop's GPU gets the power that its CPU does not need: the driver's service nvidia-powerd decides
//! that, and some distributions install it without starting it.

use crate::checks::{Answer, Check};
use crate::facts::{Host, NvmlState};
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
/// Dynamic Boost exists since the generation of Ampere.
const FIRST: (u32, u32) = (8, 6);

fn run(host: &Host, intent: &Intent) -> Answer {
    if !super::is_native_linux(host) || host.is_container() || host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    let gpus = super::of_run(host, intent)?;
    let boosts = |gpu: &&crate::facts::Gpu| {
        gpu.name().is_ok_and(|name| name.contains("Laptop GPU"))
            && gpu.capability().is_ok_and(|of| of >= FIRST)
    };
    let unit = format!("/usr/lib/systemd/system/{SERVICE}.service");
    let Some(gpu) = gpus.iter().find(boosts).filter(|_| host.exists(&unit) == Ok(true)) else {
        return Ok(Vec::new());
    };
    let state = host.command(&["systemctl", "is-active", SERVICE])?.map(|output| output.text());
    if state.is_none_or(|state| state.trim() != "inactive") {
        return Ok(Vec::new());
    }
    // A service that is enabled but does not run was stopped until the next restart, as the advice about a power limit says.
    let enabled = host.command(&["systemctl", "is-enabled", SERVICE]).ok().flatten();
    if enabled.is_some_and(|output| output.text().trim() == "enabled") {
        return Ok(Vec::new());
    }
    let title =
        format!("{} stays at its base power: the service {SERVICE} is not running", super::label(gpu));
    Ok(vec![Finding::new("gpu.boost-off", title).command(service::enable(host, SERVICE))])
}

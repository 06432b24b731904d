//! Whether a virtual GPU (vGPU) of NVIDIA has its license. The name of such a card ends with its profile, as in
//! `GRID V100D-16C`. Only nvidia-smi tells the state of the license, so it is asked on such machines alone.

use crate::checks::shell::allocator::{VARIABLES, command_without_segments};
use crate::checks::{Answer, Check};
use crate::facts::{Gpu, Host, NvmlState};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Does a virtual GPU have its license, and the memory that NCCL needs?",
    reports: &["gpu.vgpu-unlicensed", "gpu.vgpu-memory"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if intent.cpu || !super::is_native_linux(host) || host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    let gpus = super::of_run(host, intent)?;
    let Some(gpu) = gpus.iter().find(|gpu| is_virtual(gpu)) else { return Ok(Vec::new()) };
    let report = match host.command(&["nvidia-smi", "-q"]) {
        Ok(report) => report.map_or(String::new(), |report| report.text()),
        Err(_) => host.recorded_texts("nvidia-smi").join("\n"),
    };
    let status = report.lines().find_map(|line| line.trim().strip_prefix("License Status")?.split_once(':'));
    let mut findings = memory(host, intent, &gpus);
    if let Some((_, status)) = status.filter(|(_, status)| status.trim().starts_with("Unlicensed")) {
        let title = format!("{} is a virtual GPU without a license", super::label(gpu));
        findings.push(
            Finding::new("gpu.vgpu-unlicensed", title).seen(format!("License Status: {}", status.trim())),
        );
    }
    Ok(findings)
}

/// What needs the unified memory that a host's administrator has to switch on for a virtual GPU.
fn memory(host: &Host, intent: &Intent, gpus: &[Gpu]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = VARIABLES
        .iter()
        .filter_map(|name| {
            let command = command_without_segments(host, name)?;
            let title = format!(
                "{name} asks for expandable_segments, which fail on virtual GPUs without unified memory"
            );
            let remedy = "take this option out of the variable";
            Some(Finding::new("gpu.vgpu-memory", title).remedy(remedy).command(command))
        })
        .collect();
    let uses_nccl = intent.backend.as_deref() != Some("gloo");
    let several = gpus.iter().filter(|gpu| is_virtual(gpu)).count() > 1;
    if several && uses_nccl && intent.run && intent.ranks_on_gpus() > 1 {
        let title =
            "several virtual GPUs are in this run: NCCL fails on them unless the host allows unified memory";
        findings.push(
            Finding::new("gpu.vgpu-memory", title)
                .remedy(
                    "ask the administrator of the host to allow unified memory for these virtual GPUs, which have to be whole \
                     cards: `enable_uvm=1` in vgpu_params (KVM), or `pciPassthru0.cfg.enable_uvm = 1` for each (VMware); until \
                     then, use gloo",
                )
                .command("yolo train --backend gloo …"),
        );
    }
    findings
}

/// `-16C`: gigabytes of memory, and a letter for what the license is for.
fn is_virtual(gpu: &Gpu) -> bool {
    let name = gpu.name().unwrap_or_default();
    let Some((_, profile)) = name.rsplit_once('-') else { return false };
    let number = profile.trim_end_matches(['A', 'B', 'C', 'Q']);
    number.len() + 1 == profile.len() && number.parse::<u32>().is_ok()
}

//! Whether a virtual GPU (vGPU) of NVIDIA has its license. The name of such a card ends with its profile, as in
//! `GRID V100D-16C`. Only nvidia-smi tells the state of the license, so it is asked on such machines alone.

use crate::checks::{Answer, Check};
use crate::facts::{Gpu, Host, NvmlState};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Does a virtual GPU have its license?",
    reports: &["gpu.vgpu-unlicensed"],
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
    let Some((_, status)) = status.filter(|(_, status)| status.trim().starts_with("Unlicensed")) else {
        return Ok(Vec::new());
    };
    let title = format!("{} is a virtual GPU without a license", super::label(gpu));
    Ok(vec![Finding::new("gpu.vgpu-unlicensed", title).seen(format!("License Status: {}", status.trim()))])
}

/// `-16C`: gigabytes of memory, and a letter for what the license is for.
fn is_virtual(gpu: &Gpu) -> bool {
    let name = gpu.name().unwrap_or_default();
    let Some((_, profile)) = name.rsplit_once('-') else { return false };
    let number = profile.trim_end_matches(['A', 'B', 'C', 'Q']);
    number.len() + 1 == profile.len() && number.parse::<u32>().is_ok()
}

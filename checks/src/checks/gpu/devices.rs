//! Which GPUs there are, and whether those that the run names are among them.

use crate::checks::{Answer, Check, count, gigabytes};
use crate::facts::{Gpu, Host, NvmlState};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Are the GPUs of the run there?",
    reports: &["gpu.devices", "gpu.none", "gpu.not-there"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if host.nvml_state()? != NvmlState::Ready {
        // Why there is none is the driver's check to say.
        return Ok(Vec::new());
    }
    let gpus = host.gpus()?;
    if gpus.is_empty() {
        if super::absent::switched_off(host).is_some() || !super::lost::of_log(host).is_empty() {
            return Ok(Vec::new());
        }
        return Ok(vec![Finding::new("gpu.none", "the NVIDIA driver answers, but shows no GPU")]);
    }
    let mut findings: Vec<Finding> = gpus.iter().filter(|gpu| gpu.lost().is_none()).map(describe).collect();
    // Who counts the instances of a divided card is told so by the check of instances.
    let divided = gpus.iter().any(|gpu| gpu.mig() == Ok(true));
    for &wanted in intent.devices.iter().filter(|&&wanted| wanted >= gpus.len() && !divided) {
        let numbers = match gpus.len() {
            1 => "only 0".to_owned(),
            there => format!("0 to {}", there - 1),
        };
        let title =
            format!("GPU {wanted} is not there: this machine has {} ({numbers})", count(gpus.len(), "GPU"));
        findings.push(Finding::new("gpu.not-there", title));
    }
    Ok(findings)
}

fn describe(gpu: &Gpu) -> Finding {
    let name = gpu.name().unwrap_or_else(|_| "of unknown name".to_owned());
    let memory = gpu.memory().map_or(String::new(), |memory| format!(", {}", gigabytes(memory.total)));
    let capability = gpu
        .capability()
        .map_or(String::new(), |(major, minor)| format!(", compute capability {major}.{minor}"));
    Finding::ok("gpu.devices", format!("GPU {}: {name}{memory}{capability}", gpu.index))
}

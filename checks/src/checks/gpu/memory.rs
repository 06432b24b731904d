//! Whether other processes hold memory of the GPUs. In WSL the driver does not tell which.

use crate::checks::{Answer, Check, gigabytes};
use crate::facts::{Host, NvmlState};
use crate::finding::{Finding, Status};
use crate::intent::Intent;

/// Memory that others may hold before it is worth a word: a desktop takes this much.
const NOTEWORTHY: f64 = 0.1;

pub(super) static CHECK: Check = Check {
    question: "Is the memory of the GPUs free?",
    reports: &["gpu.memory-taken"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    let mut findings = Vec::new();
    for gpu in host.gpus()?.into_iter().filter(|gpu| gpu.lost().is_none()) {
        if !intent.devices.is_empty() && !intent.devices.contains(&gpu.index) {
            continue;
        }
        let memory = match gpu.memory() {
            Ok(memory) => memory,
            Err(why) => {
                findings.push(Finding::skipped("gpu.memory-taken", &why));
                continue;
            }
        };
        let used = memory.total.saturating_sub(memory.free);
        if used as f64 <= memory.total as f64 * NOTEWORTHY {
            continue;
        }
        let title =
            format!("GPU {}: {} of its {} are taken", gpu.index, gigabytes(used), gigabytes(memory.total));
        // A few hundred megabytes free do not even hold CUDA's own context and libraries.
        let status = if memory.free < 600_000_000 { Status::Error } else { Status::Warning };
        let mut finding = Finding::new("gpu.memory-taken", title).status(status);
        for process in gpu.processes().unwrap_or_default() {
            let name = process.name.unwrap_or_else(|| "a process of another user".to_owned());
            let held = process.memory.map_or(String::new(), |bytes| format!(" holds {}", gigabytes(bytes)));
            finding = finding.seen(format!("process {}, {name}{held}", process.pid));
        }
        findings.push(finding.command("nvidia-smi"));
    }
    Ok(findings)
}

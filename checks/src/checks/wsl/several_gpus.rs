//! Several GPUs in WSL: an NCCL that is too old for WSL, missing direct connections between GPUs,
//! and containers that get all GPUs.

use yolo_base::env::{NCCL_CUMEM_ENABLE, NCCL_CUMEM_HOST_ENABLE, NCCL_P2P_DISABLE};
use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::{Host, NvmlState};
use crate::finding::Finding;
use crate::foreign_library;
use crate::intent::Intent;
use crate::status::Status;

/// The first driver branch with CUDA IPC in WSL.
const IPC_DRIVER: u32 = 510;
/// Variables that make NCCL avoid what fails in WSL (microsoft/WSL#12467, NVIDIA/nccl#1113).
const SAFE: [(&str, &str); 3] =
    [(NCCL_P2P_DISABLE, "1"), (NCCL_CUMEM_ENABLE, "0"), (NCCL_CUMEM_HOST_ENABLE, "0")];

pub(super) static CHECK: Check = Check {
    question: "Can several GPUs work together in WSL?",
    reports: &["wsl.several-gpus", "wsl.nccl-old", "wsl.container-gpus"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if !host.is_wsl2()? || intent.cpu || host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    let there = host.gpus()?.len();
    let ranks = intent.ranks_here();
    let mut findings = Vec::new();
    match foreign_library::nccl_too_old_for_wsl(host) {
        // A foreign NCCL must be removed first, which its own check reports.
        Some(version) if !foreign_library::is_nccl_foreign(host, intent) => {
            let title = format!("NCCL {version} does not support WSL, which needs 2.10 or later");
            let status = if ranks > 1 { Status::Error } else { Status::Warning };
            findings.push(Finding::new("wsl.nccl-old", title).status(status).command("yolo setup"));
        }
        _ if ranks > 1 && !is_safe(host) && intent.backend.as_deref() != Some("gloo") => {
            findings.push(several(
                host,
                Status::Warning,
                &format!("{} in WSL", format::count(ranks, "rank")),
            ));
        }
        _ if there > 1 && !intent.run => {
            findings.push(several(host, Status::Info, &format!("{} in WSL", format::count(there, "GPU"))));
        }
        _ => {}
    }
    findings.extend(of_container(host, there));
    Ok(findings)
}

fn is_safe(host: &Host) -> bool {
    SAFE.iter().all(|(name, value)| host.env(name).ok().flatten().as_deref() == Some(*value))
}

fn several(host: &Host, status: Status, who: &str) -> Finding {
    let title = format!("{who}: NCCL has fewer transports here, and some of them fail");
    let finding = Finding::new("wsl.several-gpus", title).status(status);
    let finding = match host.driver_version() {
        Ok(driver) if driver.major() < IPC_DRIVER => {
            finding.seen(format!("driver {driver} has no CUDA IPC in WSL, which needs {IPC_DRIVER} or later"))
        }
        _ => finding,
    };
    SAFE.iter().fold(finding, |finding, (name, value)| finding.command(format!("export {name}={value}")))
}

/// `--gpus device=1` gives a container all GPUs in WSL.
fn of_container(host: &Host, there: usize) -> Option<Finding> {
    let wanted = host.env("NVIDIA_VISIBLE_DEVICES").ok().flatten()?;
    let numbers: Option<Vec<usize>> = wanted.split(',').map(|word| word.trim().parse().ok()).collect();
    let numbers = numbers.filter(|numbers| host.is_container() && numbers.len() < there)?;
    let title = format!(
        "this container was given GPU {wanted} but sees {}: WSL cannot hide some of them",
        format::count(there, "GPU")
    );
    let devices = numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    Some(Finding::new("wsl.container-gpus", title).command(format!("yolo train --device {devices} …")))
}

//! Whether there is memory for a run: what is free on the machine, and what the control group of a
//! container or a batch job allows.

use crate::checks::{Answer, Check, gigabytes};
use crate::facts::Host;
use crate::finding::{Finding, Status};
use crate::intent::Intent;

/// A small run on one process: yolov5n at 320 px and batch 8 was measured at 1.4 GB with the
/// original; twice that leaves room for the system.
const COMFORTABLE: u64 = 3_000_000_000;
/// Below this even that run will not fit.
const LEAST: u64 = 1_500_000_000;

pub(super) static CHECK: Check = Check {
    question: "Is there memory for a run?",
    reports: &["memory.available", "memory.low", "memory.limited"],
    preflight: true,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    let memory = host.memory()?;
    let limit = host.cgroup_memory_limit().ok().flatten().filter(|limit| limit.bytes < memory.total);
    // How much WSL was given at all is the question of its own check.
    let given = host.is_wsl2().unwrap_or(false) && limit.is_none() && memory.total < COMFORTABLE;
    let usable = limit.as_ref().map_or(memory.available, |limit| limit.bytes.min(memory.available));
    let status = match usable {
        _ if given => Status::Ok,
        bytes if bytes < LEAST => Status::Error,
        bytes if bytes < COMFORTABLE => Status::Warning,
        _ => Status::Ok,
    };
    let swap = format!("swap {}", gigabytes(memory.swap_total));
    let mut findings = Vec::new();
    if let Some(limit) = &limit {
        let title = format!(
            "a control group allows {} of this machine's {}",
            gigabytes(limit.bytes),
            gigabytes(memory.total)
        );
        let finding = Finding::new("memory.limited", title).status(status.max(Status::Info));
        findings.push(finding.seen(limit.file.clone()));
    }
    let title = format!("{} of {} are free", gigabytes(memory.available), gigabytes(memory.total));
    if limit.is_none() && status > Status::Ok {
        findings.push(Finding::new("memory.low", title).status(status).seen(swap));
    } else {
        findings.push(Finding::ok("memory.available", title).seen(swap));
    }
    Ok(findings)
}

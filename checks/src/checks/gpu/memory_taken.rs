//! Whether other processes use the GPUs' memory. In WSL the driver does not report which.

use super::processes;
use yolo_base::format;

use crate::checks::system::leftovers;
use crate::checks::{Answer, Check};
use crate::facts::{Gpu, GpuMemory, GpuProcess, Host, NvmlState};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::memory_estimate;
use crate::remedies::restart::restart;
use crate::status::Status;

pub(super) static CHECK: Check =
    Check { question: "Is the GPUs' memory free?", reports: &["gpu.memory-taken"], preflight: true, run };

fn run(host: &Host, intent: &Intent) -> Answer {
    if host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    let mut findings = Vec::new();
    let gpus = super::run_gpus::chosen(host, intent, host.gpus()?);
    for gpu in gpus.into_iter().filter(|gpu| gpu.lost().is_none()) {
        let memory = match gpu.memory() {
            Ok(memory) => memory,
            Err(why) => {
                findings.push(Finding::skipped("gpu.memory-taken", &why));
                continue;
            }
        };
        if processes::is_taken(&gpu, &memory) && !is_reported_elsewhere(host, &gpu, &memory, intent) {
            findings.push(taken(host, &gpu, &memory, intent));
        }
    }
    Ok(super::merge::merge_alike(findings))
}

/// Whether another check reports all processes of a card: ranks of an earlier run, stuck processes, and
/// the one that uses a card in exclusive mode and leaves enough memory for a rank.
fn is_reported_elsewhere(host: &Host, gpu: &Gpu, memory: &GpuMemory, intent: &Intent) -> bool {
    let processes = processes::computing(gpu);
    let is_exclusive = gpu.compute_mode().is_ok_and(|mode| mode.starts_with("exclusive"));
    let is_enough = || memory_estimate::on_gpu(intent).is_some_and(|need| need.bytes <= memory.free);
    let reported = leftovers::reported_processes(host);
    // The driver lists no dead processes, and none at all in WSL: then a stuck process is the likely
    // owner, as long as a run could still start.
    if processes.is_empty() {
        return !reported.is_empty() && !memory.is_full();
    }
    let all_reported = processes.iter().all(|one| reported.contains(&one.pid));
    all_reported || is_exclusive && !intent.cpu && is_enough()
}

/// A batch system gave the job its cards, so that a process of somebody else on them is a fault of the node.
fn in_job(host: &Host, finding: Finding, processes: &[GpuProcess]) -> Finding {
    let uid = host.user().ok().and_then(|user| user.uid);
    let all = host.processes().unwrap_or_default();
    let owner = |process: &GpuProcess| {
        all.iter().find(|one| u64::from(one.pid) == process.pid).and_then(|one| one.uid)
    };
    let owners: Vec<Option<u32>> = processes.iter().map(owner).collect();
    if !owners.is_empty() && owners.iter().all(|owner| owner.is_some() && *owner == uid) {
        return finding.remedy(
            "stop those processes, which are yours, if no other step or job of yours needs them; or choose a smaller --batch",
        );
    }
    let finding = restart(host, finding);
    if owners.iter().any(|owner| owner.is_some() && *owner != uid) {
        return finding;
    }
    finding.remedy(
        "stop those processes if they are yours, of an earlier step; if they are not, tell the administrator of this node, which has \
         given the card to two, and submit the job again so that it runs on another one",
    )
}

fn taken(host: &Host, gpu: &Gpu, memory: &GpuMemory, intent: &Intent) -> Finding {
    let used = memory.total.saturating_sub(memory.free);
    let processes = processes::computing(gpu);
    let largest = processes.iter().max_by_key(|process| process.memory);
    let by = largest.map_or(String::new(), |process| {
        let name =
            process.name.as_deref().map_or(String::new(), |name| format!("{}, ", processes::short(name)));
        let most = process.memory.filter(|_| processes.len() > 1);
        let most = most.map_or(String::new(), |bytes| format!(", {}", format::memory(bytes)));
        format!("{most} by {name}process {}", process.pid)
    });
    let need = memory_estimate::on_gpu(intent).filter(|need| intent.run && need.bytes > memory.free);
    let wanted = need.as_ref().map_or(String::new(), |need| {
        format!(
            "; a rank needs about {}, but only {} is free",
            format::memory(need.bytes),
            format::memory(memory.free)
        )
    });
    let title = format!(
        "GPU {}: {} of {} in use{by}{wanted}",
        gpu.index,
        format::memory(used),
        format::memory(memory.total)
    );
    let status = if memory.is_full() { Status::Error } else { Status::Warning };
    let finding = Finding::new("gpu.memory-taken", title).status(status);
    let finding = processes.iter().fold(finding, |finding, process| {
        let name = process.name.as_deref().unwrap_or("another user's process");
        let held = process.memory.map_or(String::new(), |bytes| format!(" uses {}", format::memory(bytes)));
        finding.seen(format!("process {} ({name}){held}", process.pid))
    });
    let finding =
        need.iter().fold(finding, |finding, need| finding.seen(format!("a rank needs {}", need.from)));
    let finding = if processes.is_empty() && host.is_wsl2() == Ok(true) {
        finding.remedy(
            "close programs of Windows that use the card, such as browsers and games (Task Manager, Details, the column \
             Dedicated GPU \
             memory shows them), or choose another --device or a smaller --batch",
        )
    } else if host.gpus().is_ok_and(|gpus| gpus.len() == 1) {
        finding.remedy("stop those processes, or choose a smaller --batch")
    } else {
        finding
    };
    let finding = finding.command(match largest {
        // Whether a process is still needed is for its owner to say: it may be a rank of another run.
        Some(process) if host.is_windows() == Ok(true) => format!("Get-Process -Id {}", process.pid),
        Some(process) => format!("ps -o pid,ppid,user,etime,args -p {}", process.pid),
        None => "nvidia-smi".to_owned(),
    });
    let fitting = need.and_then(|_| memory_estimate::fitting_batch(intent, memory.free));
    let finding =
        fitting.into_iter().fold(finding, |finding, batch| finding.options(&[format!("--batch {batch}")]));
    if host.job().is_some() { in_job(host, finding, &processes) } else { finding }
}

//! Whether the shell's limits allow the files, locked memory, address space and threads that ranks need.

use super::raise_limit::{Limit, raise};
use yolo_base::format;

use crate::checks::{Answer, Check, cores};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::start_container::{Start, start_with};
use crate::status::Status;

/// Files that a run opens in addition to its ranks, and per rank: sockets to all others, libraries,
/// images of the data loaders.
const FILES: (u64, u64) = (256, 128);
/// InfiniBand adapters register memory with the kernel, which must stay in place.
const LOCKED: u64 = 1 << 30;
/// Addresses that a rank reserves beyond the memory of machine and cards: libraries, and stacks of threads.
const ADDRESSES: u64 = 16 << 30;
/// Threads of the user's session, and those of a rank beside its workers: of CUDA, of NCCL and of the
/// supervisor. libtorch has one for each core of the machine, shared among the ranks.
const THREADS: (u64, u64) = (24, 24);
/// Workers of a rank, if the run does not say.
const WORKERS: usize = 8;

pub(super) static CHECK: Check = Check {
    question: "Are this shell's limits high enough?",
    reports: &[
        "system.open-files",
        "system.locked-memory",
        "system.address-space",
        "system.processes",
        "system.stack",
    ],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let mut findings = Vec::new();
    let files = host.soft_limit("Max open files")?;
    let need = FILES.0 + FILES.1 * intent.ranks_here() as u64;
    if files < need {
        let ranks = format::count(intent.ranks_here(), "rank");
        let whose = if intent.ranks_here() == 1 { "its" } else { "their" };
        let title = format!(
            "this shell may open only {files} files; {ranks} and {whose} data loaders need about {need}"
        );
        let status = if intent.run && files < need / 2 { Status::Error } else { Status::Warning };
        let limit = Limit {
            resource: "Max open files",
            need,
            wanted: need.max(4096),
            flag: "-n",
            item: "nofile",
            unit: "LimitNOFILE",
        };
        findings.push(raise(host, Finding::new("system.open-files", title).status(status), &limit));
    }
    let has_infiniband =
        host.folder("/sys/class/infiniband").is_ok_and(|names| names.is_some_and(|names| !names.is_empty()));
    if let Ok(locked) = host.soft_limit("Max locked memory")
        && locked < LOCKED
        && has_infiniband
    {
        let title = format!(
            "this shell may lock only {} KiB of memory, but NCCL locks more for InfiniBand",
            locked >> 10
        );
        let status = if intent.has_several_nodes() { Status::Error } else { Status::Warning };
        let limit = Limit {
            resource: "Max locked memory",
            need: LOCKED,
            wanted: u64::MAX,
            flag: "-l",
            item: "memlock",
            unit: "LimitMEMLOCK",
        };
        findings.push(raise(host, Finding::new("system.locked-memory", title).status(status), &limit));
    }
    findings.extend(address_space(host, intent));
    findings.extend(processes(host, intent));
    if host.soft_limit("Max stack size") == Ok(u64::MAX) {
        findings.push(Finding::new("system.stack", "the stack size is unlimited in this shell"));
    }
    Ok(findings)
}

/// `ulimit -v`. CUDA reserves as many addresses as the machine and its cards have memory, without using them.
fn address_space(host: &Host, intent: &Intent) -> Option<Finding> {
    let most = host.soft_limit("Max address space").ok().filter(|most| *most != u64::MAX)?;
    let cards = if intent.cpu { Vec::new() } else { host.gpus().unwrap_or_default() };
    let of_cards: u64 = cards.iter().filter_map(|gpu| Some(gpu.memory().ok()?.total)).sum();
    let of_machine = || host.memory().map_or(0, |memory| memory.total);
    let need = if cards.is_empty() { ADDRESSES } else { ADDRESSES + of_cards + of_machine() };
    if most >= need {
        return None;
    }
    let title = format!(
        "this shell limits the address space of a process to {} (ulimit -v); a rank reserves about {}",
        format::memory(most),
        format::memory(need)
    );
    let limit = Limit {
        resource: "Max address space",
        need: u64::MAX,
        wanted: u64::MAX,
        flag: "-v",
        item: "as",
        unit: "LimitAS",
    };
    let status = if intent.run { Status::Error } else { Status::Warning };
    Some(raise(host, Finding::new("system.address-space", title).status(status), &limit))
}

/// `ulimit -u`, which counts all threads of the user. Root has no such limit.
fn processes(host: &Host, intent: &Intent) -> Option<Finding> {
    let ranks = intent.ranks_here() as u64;
    let cores = cores(host).unwrap_or(1) as u64;
    let workers = intent.workers.unwrap_or(WORKERS) as u64;
    let need = THREADS.0 + ranks * (THREADS.1 + workers) + cores;
    if let Some((left, file)) = host.cgroup_processes_left().filter(|(left, _)| *left < need) {
        let title = format!(
            "a cgroup leaves this container or session {left} processes and threads (pids.max); {} with {workers} workers each \
             need about {need}",
            format::count(intent.ranks_here(), "rank")
        );
        let status = if intent.run { Status::Error } else { Status::Warning };
        let finding = Finding::new("system.processes", title).status(status).seen(file.clone());
        let finding = finding.remedy("have the limit raised, or use fewer ranks and fewer --workers");
        let wanted = need.next_power_of_two().max(4096);
        // The group of a user's sessions has its limit from systemd.
        let slice = file.split('/').find(|part| part.starts_with("user-") && part.ends_with(".slice"));
        return Some(match slice {
            Some(slice) if host.is_own_machine() => finding.remedy(format!(
                "raise the limit, which systemd sets: `systemctl set-property {slice} TasksMax={wanted}` as administrator; or \
                 use fewer ranks and fewer --workers"
            )),
            _ => start_with(host, finding, Start::Processes(wanted)),
        });
    }
    let most = host.soft_limit("Max processes").ok()?;
    if host.user().is_ok_and(|user| user.uid == Some(0)) {
        return None;
    }
    if most >= need {
        return None;
    }
    let title = format!(
        "this user may have only {most} processes and threads (ulimit -u); {} with {workers} workers each and \
         {cores} cores need about {need}",
        format::count(intent.ranks_here(), "rank")
    );
    let limit = Limit {
        resource: "Max processes",
        need,
        wanted: need.max(4096),
        flag: "-u",
        item: "nproc",
        unit: "LimitNPROC",
    };
    let status = if intent.run { Status::Error } else { Status::Warning };
    let finding = raise(host, Finding::new("system.processes", title).status(status), &limit);
    Some(finding.seen("until then, use fewer ranks and fewer --workers"))
}

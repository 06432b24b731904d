//! Whether the shell's limits allow the files, locked memory, address space and threads that ranks need.

use super::raise_limit::{Limit, raise};
use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

/// Files that a run opens in addition to its ranks, and per rank: sockets to all others, libraries,
/// images of the data loaders.
const FILES: (u64, u64) = (256, 128);
/// InfiniBand adapters register memory with the kernel, which must stay in place.
const LOCKED: u64 = 1 << 30;
/// Addresses that a rank reserves beyond the memory of machine and cards: libraries, and stacks of threads.
const ADDRESSES: u64 = 16 << 30;
/// A day, which a rank with eight busy threads uses in three hours.
const CPU_SECONDS: u64 = 24 * 60 * 60;
/// The largest library of libtorch is about half of this.
const FILE_SIZE: u64 = 2 << 30;

pub(super) static CHECK: Check = Check {
    question: "Are this shell's limits high enough?",
    reports: &[
        "system.open-files",
        "system.locked-memory",
        "system.address-space",
        "system.processes",
        "system.stack",
        "system.cpu-time",
        "system.file-size",
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
            words: "the limit on open files",
            unit: "LimitNOFILE",
        };
        findings.push(raise(host, Finding::new("system.open-files", title).status(status), &limit));
    }
    let has_infiniband =
        host.folder("/sys/class/infiniband").is_ok_and(|names| names.is_some_and(|names| !names.is_empty()));
    if let Ok(locked) = host.soft_limit("Max locked memory")
        && locked < LOCKED
        && has_infiniband
        && !host.may_lock_any_memory()
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
            words: "the limit on locked memory",
            unit: "LimitMEMLOCK",
        };
        findings.push(raise(host, Finding::new("system.locked-memory", title).status(status), &limit));
    }
    findings.extend(address_space(host, intent));
    findings.extend(cpu_time(host, intent));
    findings.extend(file_size(host, intent));
    findings.extend(super::tasks::findings(host, intent));
    if host.soft_limit("Max stack size") == Ok(u64::MAX) {
        findings.push(Finding::new("system.stack", "the stack size is unlimited in this shell"));
    }
    Ok(findings)
}

/// `ulimit -t`, as login nodes have it. A run takes longer, and each of its threads counts.
fn cpu_time(host: &Host, intent: &Intent) -> Option<Finding> {
    let most = host.soft_limit("Max cpu time").ok().filter(|most| *most < CPU_SECONDS)?;
    let title = format!(
        "this shell ends a process after {} of CPU time (ulimit -t), which a rank's threads use up together",
        format::count(usize::try_from(most / 60).unwrap_or(usize::MAX), "minute")
    );
    let limit = Limit {
        resource: "Max cpu time",
        need: CPU_SECONDS,
        wanted: u64::MAX,
        flag: "-t",
        item: "cpu",
        words: "the limit on CPU time",
        unit: "LimitCPU",
    };
    let status = if intent.run { Status::Error } else { Status::Warning };
    let finding = Finding::new("system.cpu-time", title).status(status);
    let hard = host.hard_limit("Max cpu time").unwrap_or(u64::MAX);
    Some(match host.batch_system().filter(|_| host.job().is_none() && hard < CPU_SECONDS) {
        Some(system) => finding.remedy(format!(
            "start the run in a job of {}: this limit is for the login nodes of a cluster",
            system.name()
        )),
        None => raise(host, finding, &limit),
    })
}

/// `ulimit -f`. The largest files are checkpoints and the libraries of libtorch, of some gigabytes.
fn file_size(host: &Host, intent: &Intent) -> Option<Finding> {
    let most = host.soft_limit("Max file size").ok().filter(|most| *most < FILE_SIZE)?;
    let title = format!("this shell may write files of at most {} (ulimit -f)", format::memory(most));
    let limit = Limit {
        resource: "Max file size",
        need: FILE_SIZE,
        wanted: u64::MAX,
        flag: "-f",
        item: "fsize",
        words: "the limit on the size of files",
        unit: "LimitFSIZE",
    };
    let status = if intent.run { Status::Error } else { Status::Warning };
    Some(raise(host, Finding::new("system.file-size", title).status(status), &limit))
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
        words: "the limit on address space",
        unit: "LimitAS",
    };
    let status = if intent.run { Status::Error } else { Status::Warning };
    Some(raise(host, Finding::new("system.address-space", title).status(status), &limit))
}

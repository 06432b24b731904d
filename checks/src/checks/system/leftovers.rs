//! Whether ranks of an earlier run are still running: they hold GPUs, memory and ports, and one that
//! is stuck in the driver cannot even be killed.

use yolo_base::format;

use crate::change::Change;
use crate::checks::{Answer, Check};
use crate::facts::{Gpu, Host, Process};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::restart::restart;
use crate::status::Status;

/// The name of a rank's program, as the kernel shows it.
const RANK: &str = "yolo-trainer";

pub(super) static CHECK: Check = Check {
    question: "Are ranks of an earlier run still running?",
    reports: &["system.left-ranks", "system.stuck-process"],
    preflight: true,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let processes = host.processes()?;
    let (left, stuck) = (left(host, &processes), stuck(host, &processes));
    let uid = host.user().ok().and_then(|user| user.uid);
    let mut findings = Vec::new();
    if let Some(first) = left.first() {
        let title = format!(
            "{} of an earlier run {} still running",
            format::count(left.len(), "rank"),
            if left.len() == 1 { "is" } else { "are" }
        );
        let pids: Vec<String> = left.iter().map(|one| one.pid.to_string()).collect();
        let others = first.uid.is_some() && first.uid != uid;
        let finding = Finding::new("system.left-ranks", title);
        let finding = if others {
            let finding = finding.command(format!("ps -o pid,user,etime,args -p {}", pids.join(",")));
            // They are of a job that has ended, and whoever had it may not be on this node any more.
            match host.job() {
                Some(_) => restart(host, finding),
                None => finding.remedy("ask the owner of these processes to stop them"),
            }
        } else {
            finding.command(format!("kill {}", pids.join(" ")))
        };
        let finding = if fill_a_gpu(host, &left) { finding.status(Status::Error) } else { finding };
        findings.push(left.iter().fold(finding, |finding, one| {
            let finding = finding.seen(describe(host, one));
            // Other users' processes, and Python's, are for their owners to stop.
            if uid.is_some() && one.uid == uid && one.name == RANK {
                finding.change(Change::EndProcess { pid: one.pid, name: one.name.clone() })
            } else {
                finding
            }
        }));
    }
    if let Some(first) = stuck.first() {
        let title =
            format!("{} (process {}) is stuck in the kernel and cannot be killed", first.name, first.pid);
        let finding = restart(host, Finding::new("system.stuck-process", title));
        let finding = if fill_a_gpu(host, &stuck) { finding.status(Status::Error) } else { finding };
        findings.push(stuck.iter().fold(finding, |finding, one| finding.seen(describe(host, one))));
    }
    Ok(findings)
}

/// The ids of the processes that this check reports, so that what they hold is not reported twice.
pub(in crate::checks) fn reported_processes(host: &Host) -> Vec<u64> {
    let processes = host.processes().unwrap_or_default();
    let reported = left(host, &processes).into_iter().chain(stuck(host, &processes));
    reported.map(|one| u64::from(one.pid)).collect()
}

/// Whether a process can be stopped: a dead one, or one that waits in the kernel, receives no signal.
pub(in crate::checks) fn can_be_stopped(process: &Process) -> bool {
    !in_state(process, "D") && !in_state(process, "Z")
}

/// Ranks that run without a supervisor. A launcher, a debugger or a profiler may have started a rank as well as `yolo`, so
/// only one that was handed to the program that adopts orphans is left over. A rank of a run in progress must never be
/// called so, because the remedy ends it.
fn left<'a>(host: &Host, processes: &'a [Process]) -> Vec<&'a Process> {
    let has_parent = |one: &&Process| match one.parent {
        Some(parent) => {
            let known = processes.iter().find(|other| other.pid == parent);
            known.map_or_else(|| !adopts(host, parent), |known| !in_state(known, "Z"))
        }
        None => true,
    };
    let ranks = processes.iter().filter(|one| one.name == RANK && can_be_stopped(one));
    ranks.filter(|one| !has_parent(one)).collect()
}

/// Whether this process takes over those whose parent has died, and starts no ranks itself: the first process of the
/// machine or of a user's session, or a small init of a container.
fn adopts(host: &Host, pid: u32) -> bool {
    const NAMES: [&str; 12] = [
        "systemd",
        "init",
        "tini",
        "docker-init",
        "dumb-init",
        "catatonit",
        "podman-init",
        "s6-svscan",
        "runit",
        "openrc-init",
        "launchd",
        "busybox",
    ];
    match host.text(&format!("/proc/{pid}/comm")) {
        Ok(Some(name)) => {
            let name = name.trim();
            // In WSL the parent of a terminal's programs, such as `Relay(412)`, belongs to init.
            NAMES.contains(&name)
                || ["init(", "init-systemd(", "Relay("].iter().any(|start| name.starts_with(start))
        }
        // It has just ended.
        Ok(None) => false,
        // The first process of a container may be the script that started the rank.
        Err(_) => pid == 1 && !host.is_container(),
    }
}

/// Processes that only a restart removes. A process that waits for a disk is briefly in state D, and a
/// dead one is in state Z until its parent reaps it; so there must be another sign that it is stuck: its
/// parent is gone, its command line is empty, it holds GPU memory, or the kernel says so.
fn stuck<'a>(host: &Host, processes: &'a [Process]) -> Vec<&'a Process> {
    let holders: Vec<u64> = host.gpus().unwrap_or_default().iter().flat_map(holders).collect();
    let blocked = host.kernel_lines(&["blocked for more than"]);
    let is_stuck = |one: &&Process| {
        if !["yolo", "python", "torchrun", "pt_"].iter().any(|begin| one.name.starts_with(begin)) {
            return false;
        }
        let parent = processes.iter().find(|other| Some(other.pid) == one.parent);
        // The first process of a container does not reap orphans.
        let is_orphan = one.parent == Some(1) && parent.is_none() && !host.is_container();
        // init is also the parent of system services, many of which are Python programs.
        let is_orphan = is_orphan && (one.uid != Some(0) || one.name == RANK);
        let lost_parent = is_orphan || parent.is_some_and(|parent| in_state(parent, "Z"));
        let holds = holders.contains(&u64::from(one.pid));
        if in_state(one, "D") {
            let command = one.command.as_deref().unwrap_or_default().trim();
            let has_died =
                command.is_empty() || command.ends_with("<defunct>") || command.ends_with("[defunct]");
            let named = format!(":{} blocked", one.pid);
            let of_a_run = parent.is_some_and(|parent| !in_state(parent, "Z"));
            has_died || lost_parent || holds && !of_a_run || blocked.iter().any(|line| line.contains(&named))
        } else {
            // init reaps dead processes at once, unless one of their threads is stuck.
            in_state(one, "Z") && (lost_parent || holds && matches!(one.parent, None | Some(1)))
        }
    };
    processes.iter().filter(is_stuck).collect()
}

/// Whether they leave too little GPU memory to start.
fn fill_a_gpu(host: &Host, processes: &[&Process]) -> bool {
    let gpus = host.gpus().unwrap_or_default();
    let mut full = gpus.iter().filter(|gpu| gpu.memory().is_ok_and(|memory| memory.is_full()));
    full.any(|gpu| {
        let holders = holders(gpu);
        processes.iter().any(|one| holders.contains(&u64::from(one.pid)))
    })
}

fn holders(gpu: &Gpu) -> Vec<u64> {
    gpu.processes().unwrap_or_default().into_iter().map(|process| process.pid).collect()
}

fn in_state(process: &Process, letter: &str) -> bool {
    process.state.as_deref().is_some_and(|state| state.starts_with(letter))
}

fn describe(host: &Host, process: &Process) -> String {
    let state = process.state.as_deref().map_or(String::new(), |state| format!(", state {state}"));
    let gpus = host.gpus().unwrap_or_default();
    let held = gpus.iter().filter(|gpu| holders(gpu).contains(&u64::from(process.pid)));
    let held: String = held.map(|gpu| format!(", uses memory of GPU {}", gpu.index)).collect();
    format!("process {}, {}{state}{held}", process.pid, process.name)
}

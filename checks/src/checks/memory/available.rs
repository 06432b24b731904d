//! Whether there is enough memory for the run: what is available on the machine, and what the cgroup
//! of a container or batch job allows.

use yolo_base::format;

use super::takers;
use crate::checks::{Answer, Check};
use crate::facts::{Host, MemoryLimit, Unknown};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::memory_estimate::{self, Need};
use crate::remedies::more_memory::raise;
use crate::status::Status;

/// A small run with one process: yolov5n at 320 px and batch 8 was measured at 1.4 GB with the original;
/// twice that leaves some memory for the system.
const COMFORTABLE: u64 = 3_000_000_000;
/// Less than this in use is not worth mentioning.
const NOTABLE: u64 = 256 << 20;
/// Below this, even that run does not fit.
const LEAST: u64 = 1_500_000_000;

pub(super) static CHECK: Check = Check {
    question: "Is there enough memory for a run?",
    reports: &["memory.available", "memory.low", "memory.limited"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let memory = host.memory()?;
    let need = intent.run.then(|| memory_estimate::in_memory(intent, intent.workers.unwrap_or(8)));
    let limit = host.cgroup_memory_limit().ok().flatten();
    // Above another amount, which can be smaller, programs get slower and slower.
    let high =
        host.cgroup_memory_high().filter(|high| limit.as_ref().is_none_or(|limit| high.bytes < limit.bytes));
    let is_slowing = high.is_some();
    let limit = high.or(limit).filter(|limit| limit.bytes < memory.total);
    // Another check covers how much memory WSL has.
    let given = host.is_wsl2().unwrap_or(false) && limit.is_none() && memory.total < COMFORTABLE;
    let left = |limit: &MemoryLimit| limit.bytes.saturating_sub(limit.used);
    let usable = limit.as_ref().map_or(memory.available, |limit| left(limit).min(memory.available));
    let status = if given { Status::Ok } else { status_of(usable, need.as_ref()) };
    let swap = match memory.swap_total {
        0 => "no swap".to_owned(),
        total => format!("swap {}", format::memory(total)),
    };
    let wanted = need
        .as_ref()
        .filter(|_| status > Status::Ok)
        .map_or(String::new(), |need| format!(", but this run needs about {}", format::memory(need.bytes)));
    let explain = |finding: Finding| match &need {
        Some(need) if status > Status::Ok => finding.seen(format!("it needs {}", need.from)),
        _ => finding,
    };
    let mut findings = Vec::new();
    let is_limit = limit.as_ref().is_some_and(|limit| left(limit) <= memory.available);
    if let Some(limit) = limit.as_ref().filter(|_| is_limit && status > Status::Ok) {
        let used = match limit.used {
            0..NOTABLE => String::new(),
            used => format!(", of which {} are in use already", format::memory(used)),
        };
        let title = format!(
            "a cgroup allows {} of this machine's {}{used}{wanted}",
            format::memory(limit.bytes),
            format::memory(memory.total)
        );
        let finding = Finding::new("memory.limited", title).status(status).seen(limit.file.clone());
        let finding = if is_slowing { slowing(host, finding, limit) } else { finding };
        let finding = match host.cgroup_kills(limit) {
            0 => finding,
            kills => finding.seen(format!(
                "the kernel has killed {} here because of this limit",
                format::count_of(kills as usize, "process", "processes")
            )),
        };
        let finding = match &need {
            Some(need) => {
                let wanted = need.bytes.saturating_add(limit.used);
                raise(host, &finding, limit, wanted).unwrap_or_else(|| {
                    finding.remedy(
                        "train with fewer --workers, without `--cache ram`, and with a smaller --batch or --imgsz: this \
                         machine has not much more to give",
                    )
                })
            }
            None => finding,
        };
        findings.push(explain(finding));
    }
    if given && memory.total < LEAST {
        let why = format!("WSL has {} in total, which another check covers", format::memory(memory.total));
        return Ok(vec![Finding::skipped("memory.available", &Unknown::because(&why))]);
    }
    let title = format!("{} of {} available", format::memory(memory.available), format::memory(memory.total));
    let title = match limit.as_ref().filter(|_| is_limit) {
        Some(limit) => format!("{title}, of which a cgroup allows {}", format::memory(limit.bytes)),
        None => title,
    };
    // WSL has only part of the PC's memory: a check of WSL reports if that is too little.
    let is_wsl_share = host.is_wsl2().unwrap_or(false)
        && need.as_ref().is_some_and(|need| memory.total < need.bytes)
        && memory.available >= LEAST;
    if !is_limit && status > Status::Ok && !is_wsl_share {
        let finding = Finding::new("memory.low", format!("only {title}{wanted}")).status(status).seen(swap);
        findings.push(takers::name(host, explain(finding), memory.total));
    } else {
        findings.push(Finding::ok("memory.available", title).seen(swap));
    }
    Ok(findings)
}

/// The kernel ends no program at this limit.
fn slowing(host: &Host, finding: Finding, limit: &MemoryLimit) -> Finding {
    let finding = finding.because(
        "above this amount (memory.high) the kernel slows all programs of the group down while it takes memory back from them, until \
         a run seems to stand still",
    );
    match host.cgroup_slowed(limit) {
        0 => finding,
        times => finding.seen(format!("it has done so {} here", format::count(times as usize, "time"))),
    }
}

/// Less than needed is a warning, because the need is an estimate; less than half is an error.
fn status_of(usable: u64, need: Option<&Need>) -> Status {
    let (comfortable, least) = need.map_or((COMFORTABLE, LEAST), |need| (need.bytes, need.bytes / 2));
    match usable {
        bytes if bytes < least => Status::Error,
        bytes if bytes < comfortable => Status::Warning,
        _ => Status::Ok,
    }
}

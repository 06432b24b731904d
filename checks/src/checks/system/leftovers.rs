//! Whether ranks of an earlier run are still there: they hold GPUs, memory and ports, and one that
//! hangs in the driver cannot even be killed.

use crate::change::Change;
use crate::checks::{Answer, Check, count};
use crate::facts::{Host, Process};
use crate::finding::Finding;
use crate::intent::Intent;

/// The name of a rank's program, as the kernel shows it.
const RANK: &str = "yolo-trainer";

pub(super) static CHECK: Check = Check {
    question: "Are ranks of an earlier run still there?",
    reports: &["system.left-ranks", "system.stuck-process"],
    preflight: true,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let processes = host.processes()?;
    // Under a batch system another program than `yolo` is the parent of each rank.
    let is_job = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "TORCHELASTIC_RUN_ID"]
        .iter()
        .any(|name| host.env(name).is_ok_and(|value| value.is_some()));
    let stuck: Vec<&Process> = processes.iter().filter(|one| is_stuck(one)).collect();
    let uid = host.user().ok().and_then(|user| user.uid);
    let has_parent = |one: &&Process| match one.parent {
        Some(parent) => {
            let known = processes.iter().find(|other| other.pid == parent);
            known.map_or(parent != 1 && is_job, |known| known.state.as_deref() != Some("Z"))
        }
        None => true,
    };
    let left: Vec<&Process> = processes
        .iter()
        .filter(|one| one.name == RANK && !matches!(one.state.as_deref(), Some("Z" | "D")))
        .filter(|one| !has_parent(one))
        .collect();
    let mut findings = Vec::new();
    if let Some(first) = left.first() {
        let title = format!(
            "{} of an earlier run {} still there",
            count(left.len(), "rank"),
            if left.len() == 1 { "is" } else { "are" }
        );
        let pids: Vec<String> = left.iter().map(|one| one.pid.to_string()).collect();
        let others = first.uid.is_some() && first.uid != uid;
        let sudo = if others { "sudo " } else { "" };
        let finding =
            Finding::new("system.left-ranks", title).command(format!("{sudo}kill {}", pids.join(" ")));
        let user = host.user().ok().and_then(|user| user.uid);
        findings.push(left.iter().fold(finding, |finding, one| {
            let finding = finding.seen(describe(one));
            // Others' processes, and Python's, are for their owner to end.
            if user.is_some() && one.uid == user && one.name == "yolo-trainer" {
                finding.change(Change::EndProcess { pid: one.pid, name: one.name.clone() })
            } else {
                finding
            }
        }));
    }
    if let Some(first) = stuck.first() {
        let title =
            format!("{} (process {}) hangs in the kernel and cannot be killed", first.name, first.pid);
        let finding = Finding::new("system.stuck-process", title).command("sudo reboot");
        findings.push(stuck.iter().fold(finding, |finding, one| finding.seen(describe(one))));
    }
    Ok(findings)
}

/// A process that waits for a disk is in state D for moments; one that was killed and stays so has
/// lost its words, or is shown as defunct.
fn is_stuck(process: &Process) -> bool {
    let of_a_run = ["yolo", "python", "torchrun", "pt_"].iter().any(|begin| process.name.starts_with(begin));
    let command = process.command.as_deref().unwrap_or_default().trim();
    let has_died = command.is_empty() || command.ends_with("<defunct>") || command.ends_with("[defunct]");
    of_a_run && process.state.as_deref().is_some_and(|state| state.starts_with('D')) && has_died
}

fn describe(process: &Process) -> String {
    let state = process.state.as_deref().map_or(String::new(), |state| format!(", state {state}"));
    format!("process {}, {}{state}", process.pid, process.name)
}

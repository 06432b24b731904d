//! Limits of a container that affect NCCL with several ranks: blocked system calls, and the limit on
//! locked memory.

use crate::checks::{Answer, Check};
use crate::facts::{Host, NvmlState};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::start_container::{Start, start_with};

pub(super) static CHECK: Check = Check {
    question: "Does this container allow what NCCL needs?",
    reports: &["container.numa-blocked", "container.memlock"],
    preflight: false,
    run,
};

/// CAP_SYS_NICE of linux/capability.h; with it, Docker's seccomp filter allows NUMA calls.
const SYS_NICE: u64 = 1 << 23;
/// The seccomp mode in which a filter decides.
const FILTERED: u64 = 2;
/// The buffers of a run over InfiniBand fit in this.
const ENOUGH: u64 = 1 << 30;

fn run(host: &Host, intent: &Intent) -> Answer {
    if host.os()? != "linux" || !host.is_container() || intent.cpu || host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    let gpus = host.gpus()?.len();
    let ranks = if intent.devices.is_empty() { gpus } else { intent.devices.len() };
    let several = ranks > 1 || intent.has_several_nodes();
    let mut findings = Vec::new();
    if several && is_filtered(host).unwrap_or(false) {
        let title = "this container blocks NUMA system calls, so NCCL copies between GPUs through /dev/shm";
        findings.push(start_with(host, Finding::new("container.numa-blocked", title), Start::Numa));
    }
    let adapters = host.folder("/sys/class/infiniband").ok().flatten().unwrap_or_default();
    if let (Some(adapter), Ok(limit)) = (adapters.first(), host.soft_limit("Max locked memory"))
        && limit < ENOUGH
        && !host.may_lock_any_memory()
    {
        let title = format!(
            "this container may lock only {} KiB of memory, but has the InfiniBand adapter {adapter}",
            limit >> 10
        );
        let finding = Finding::new("container.memlock", title);
        findings.push(start_with(host, finding, Start::LockedMemory));
    }
    Ok(findings)
}

/// Whether a seccomp filter is active and the capability that would open it is missing.
fn is_filtered(host: &Host) -> Option<bool> {
    let mode = host.of_status("Seccomp:")?.parse::<u64>().ok()?;
    Some(mode == FILTERED && host.capabilities()? & SYS_NICE == 0)
}

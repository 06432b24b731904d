//! Whether the kernel hands out only memory that it has (`vm.overcommit_memory=2`). CUDA, and the data loaders of a run,
//! reserve far more addresses than they use, which such a kernel refuses although memory is free.

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::facts::view::meminfo::bytes_of;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Does the kernel let programs reserve memory?",
    reports: &["memory.overcommit"],
    preflight: true,
    run,
};

/// What a rank reserves at least.
const LEAST: u64 = 16 << 30;

fn run(host: &Host, intent: &Intent) -> Answer {
    if host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let mode = host.text("/proc/sys/vm/overcommit_memory").ok().flatten();
    if mode.as_deref().map(str::trim) != Some("2") {
        return Ok(Vec::new());
    }
    let text = host.text("/proc/meminfo")?.unwrap_or_default();
    let (Some(limit), Some(used)) = (bytes_of(&text, "CommitLimit"), bytes_of(&text, "Committed_AS")) else {
        return Ok(Vec::new());
    };
    let left = limit.saturating_sub(used);
    if left >= LEAST * intent.ranks_here() as u64 {
        return Ok(Vec::new());
    }
    let title = format!(
        "the kernel does not overcommit memory: programs can reserve {} more, which is too little for {}",
        format::memory(left),
        format::count(intent.ranks_here(), "rank")
    );
    let status = if intent.run { Status::Error } else { Status::Warning };
    Ok(vec![
        Finding::new("memory.overcommit", title)
            .status(status)
            .seen(format!(
                "vm.overcommit_memory is 2; CommitLimit {}, Committed_AS {}",
                format::memory(limit),
                format::memory(used)
            ))
            .command("sudo sysctl vm.overcommit_memory=0"),
    ])
}

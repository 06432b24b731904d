//! Whether the requested backend works for the run. What Windows lacks is checked there.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Does the requested backend work for this run?",
    reports: &["run.no-nccl", "run.backend-unknown"],
    preflight: true,
    run,
};

fn run(_: &Host, intent: &Intent) -> Answer {
    let finding = match intent.backend.as_deref() {
        None | Some("gloo") => return Ok(Vec::new()),
        Some("nccl") if intent.cpu => {
            Finding::new("run.no-nccl", "--backend nccl needs GPUs, but this run is on the CPU")
        }
        Some("nccl") => return Ok(Vec::new()),
        Some(other) => {
            Finding::new("run.backend-unknown", format!("--backend {other} is neither nccl nor gloo"))
        }
    };
    Ok(vec![finding])
}

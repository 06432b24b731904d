//! Whether `--device` names one device per rank. Whether the device exists is checked with the GPUs.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Does each rank have its own device?",
    reports: &["run.device-twice", "run.device-words", "run.ranks-without-devices", "run.node-rank"],
    preflight: true,
    run,
};

fn run(_: &Host, intent: &Intent) -> Answer {
    let mut findings = Vec::new();
    if let Some(words) = &intent.device_words {
        findings.push(Finding::new("run.device-words", format!("--device {words} is not a device")));
    }
    let mut unique = intent.devices.clone();
    unique.sort_unstable();
    unique.dedup();
    let listed = |devices: &[usize]| devices.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    if unique.len() < intent.devices.len() {
        let whom = if intent.is_one_process() { "two parts of the run" } else { "two ranks" };
        let title = format!("--device {} assigns the same GPU to {whom}", listed(&intent.devices));
        let remedy =
            format!("name each GPU once, with `--device {}`, unless this is a test", listed(&unique));
        findings.push(Finding::new("run.device-twice", title).remedy(remedy));
    } else if let Some(ranks) = intent.ranks.filter(|&ranks| !unique.is_empty() && ranks != unique.len()) {
        let title = format!(
            "--nproc-per-node {ranks} does not match --device {}: there is one rank per GPU",
            listed(&unique)
        );
        findings.push(Finding::new("run.ranks-without-devices", title));
    }
    if let (Some(nodes), Some(rank)) = (intent.nnodes, intent.node_rank)
        && rank >= nodes
    {
        let title = match nodes {
            1 => format!("--node-rank {rank} is out of range: a single machine is number 0"),
            _ => format!(
                "--node-rank {rank} is out of range: {nodes} machines are numbered 0 to {}",
                nodes.saturating_sub(1)
            ),
        };
        findings.push(Finding::new("run.node-rank", title));
    }
    Ok(findings)
}

//! The checks: each asks one question of the facts and answers with findings. They are pure
//! functions, one file a subject.

mod disk;
mod gpu;
mod libtorch;
mod memory;
mod network;
mod system;

use crate::facts::Facts;
use crate::finding::{Finding, Status};

/// What the user means to do; checks judge the host against it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Intent {
    /// GPUs that the run names, by nvidia-smi's number.
    pub gpus: Vec<usize>,
}

/// Judges the facts: findings in the order of their groups.
pub fn judge(facts: &Facts, intent: &Intent) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(system::check(facts));
    findings.extend(gpu::check(facts, intent));
    findings.extend(libtorch::check(facts));
    findings.extend(memory::check(facts));
    findings.extend(disk::check(facts));
    findings.extend(network::check(facts));
    findings.sort_by_key(|finding| finding.area);
    findings
}

/// A check whose fact is missing.
fn skipped(id: &'static str, why: &str) -> Finding {
    Finding::new(id, Status::Skipped, format!("skipped, because {why}"))
}

/// Bytes in units of 1000.
fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

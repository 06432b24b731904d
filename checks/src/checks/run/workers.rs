//! Whether there are enough CPU cores for the data loader threads: `--workers` is per rank.

use yolo_base::format;

use crate::checks::{Answer, Check, cores};
use crate::facts::{Host, Unknown};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Are there enough CPU cores for the data loaders of all ranks?",
    reports: &["run.workers-many"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let Some(workers) = intent.workers.filter(|_| intent.run) else { return Ok(Vec::new()) };
    let cores = cores(host).ok_or_else(|| Unknown::because("the number of cores is unknown"))?;
    let ranks = intent.ranks_here();
    if workers.saturating_mul(ranks) <= cores {
        return Ok(Vec::new());
    }
    let title = format!(
        "--workers {workers} creates {} threads for {}, but there are {}",
        workers.saturating_mul(ranks),
        format::count(ranks, "rank"),
        format::count(cores, "core")
    );
    let finding = Finding::new("run.workers-many", title);
    Ok(vec![finding.command(format!("--workers {}", (cores / ranks).max(1)))])
}

//! Whether the batch is divisible by the number of ranks, if they have equal shares.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Is the batch divisible by the number of ranks?",
    reports: &["run.batch-uneven", "run.batch-auto", "run.batch-auto-shared"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if !intent.run {
        return Ok(Vec::new());
    }
    let ranks = intent.shares_of_batch();
    let Some(batch) = intent.images_a_step() else {
        if intent.nnodes.is_some_and(|machines| machines > 1) {
            let title = format!(
                "--batch {} (automatic) is not possible on several machines",
                intent.batch.unwrap_or(-1)
            );
            return Ok(vec![
                Finding::new("run.batch-auto", title).options(&[format!("--batch {}", 16 * ranks)]),
            ]);
        }
        let is_shared = host.is_wsl2().unwrap_or(false) || host.os().is_ok_and(|os| os == "windows");
        let finding = Finding::new(
            "run.batch-auto-shared",
            "the automatic batch relies on GPU memory that Windows also \
                                                   uses",
        );
        return Ok(if is_shared && !intent.cpu { vec![finding] } else { Vec::new() });
    };
    if batch % ranks == 0 || intent.batch_split.is_some() {
        return Ok(Vec::new());
    }
    let (below, above) = (batch / ranks * ranks, batch.div_ceil(ranks) * ranks);
    let parts = if intent.is_one_process() { "devices" } else { "ranks" };
    let title = format!("--batch {batch} is not divisible by {ranks} {parts}");
    let finding = Finding::new("run.batch-uneven", title);
    let fitting = [below, above].into_iter().filter(|&batch| batch > 0);
    Ok(vec![finding.options(&fitting.map(|batch| format!("--batch {batch}")).collect::<Vec<_>>())])
}

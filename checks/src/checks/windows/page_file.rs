//! Whether Windows can commit the memory of a run. Unlike Linux it only commits what RAM and the page file can hold
//! together. What ranks use inside WSL is memory of the virtual machine, which Windows has to commit.

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

/// Memory that a rank uses: the libtorch and CUDA libraries, and its images.
const RANK: u64 = 3_000_000_000;

pub(super) static CHECK: Check = Check {
    question: "Can Windows commit enough memory for a run?",
    reports: &["windows.page-file"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if !host.is_windows()? {
        return Ok(Vec::new());
    }
    let memory = host.memory()?;
    let ranks = intent.ranks_here();
    let need = RANK.saturating_mul(ranks as u64);
    let promised = memory.available.saturating_add(memory.swap_free);
    if promised >= need {
        return Ok(Vec::new());
    }
    let title = format!(
        "Windows can commit only {} more, but {} {} about {}",
        format::memory(promised),
        format::count(ranks, "rank"),
        if ranks == 1 { "needs" } else { "need" },
        format::memory(need)
    );
    Ok(vec![
        Finding::new("windows.page-file", title)
            .seen(format!(
                "page file {}, {} free",
                format::memory(memory.swap_total),
                format::memory(memory.swap_free)
            ))
            .command("SystemPropertiesPerformance.exe"),
    ])
}

//! Whether Windows can promise the memory of a run. Unlike Linux it promises only what memory and
//! page file together can hold, and CUDA's libraries ask for gigabytes in each rank.

use crate::checks::{Answer, Check, count, gigabytes};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

/// What a rank asks to be promised: libtorch's and CUDA's libraries, and its images.
const RANK: u64 = 3_000_000_000;

pub(super) static CHECK: Check = Check {
    question: "Can Windows promise the memory of a run?",
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
        "Windows can promise {} more, and {} asks for about {}",
        gigabytes(promised),
        count(ranks, "rank"),
        gigabytes(need)
    );
    let title = if ranks == 1 { title } else { title.replace("asks", "ask") };
    Ok(vec![
        Finding::new("windows.page-file", title)
            .seen(format!(
                "page file {}, of which {} are free",
                gigabytes(memory.swap_total),
                gigabytes(memory.swap_free)
            ))
            .command("SystemPropertiesPerformance.exe"),
    ])
}

//! Whether Windows can commit the memory of a run. Unlike Linux it only commits what RAM and the
//! page file can hold together, and the CUDA libraries reserve gigabytes in each rank.

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::{Host, Memory};
use crate::finding::Finding;
use crate::intent::Intent;

/// Memory that a rank commits: the libtorch and CUDA libraries, and its images.
const RANK: u64 = 3_000_000_000;

/// Memory that a data loader process commits, which in Python loads the CUDA libraries too (reported as
/// 2 to 3 GB in ultralytics/yolov5#7657).
const PROCESS: u64 = 2 << 30;

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
        return Ok(without(&memory, ranks, intent).into_iter().collect());
    }
    let title = format!(
        "Windows can commit only {} more, but {} need about {}",
        format::memory(promised),
        format::count(ranks, "rank"),
        format::memory(need)
    );
    let title = if ranks == 1 { title } else { title.replace("asks", "ask") };
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

/// A PC without a page file, on which data loader processes, as Python trainers use them, do not fit:
/// one of our runs starts there, but leaves almost nothing for other programs.
fn without(memory: &Memory, ranks: usize, intent: &Intent) -> Option<Finding> {
    let workers = intent.workers.filter(|_| intent.run && memory.swap_total == 0)?;
    let need = PROCESS.saturating_mul((workers * ranks) as u64);
    if memory.available >= need {
        return None;
    }
    let title = format!(
        "Windows has no page file and can commit only {} more: {} that load CUDA need about {}",
        format::memory(memory.available),
        format::count_of(workers * ranks, "worker process", "worker processes"),
        format::memory(need)
    );
    let cause = "each worker process loads the CUDA libraries, and Windows refuses memory beyond RAM and \
                 page file with error 1455; yolo's workers are threads and need less";
    Some(Finding::new("windows.page-file", title).because(cause).command("SystemPropertiesPerformance.exe"))
}

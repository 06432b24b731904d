//! Whether Windows can promise the memory of a run. Unlike Linux it promises only what memory and
//! page file together can hold, and CUDA's libraries ask for gigabytes in each rank.

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::{Host, Memory};
use crate::finding::Finding;
use crate::intent::Intent;

/// What a rank asks to be promised: libtorch's and CUDA's libraries, and its images.
const RANK: u64 = 3_000_000_000;

/// What a process asks to be promised that loads images and, with Python's trainers, CUDA's libraries
/// (reported as 2 to 3 GB in ultralytics/yolov5#7657).
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
                "page file {}, of which {} are free",
                format::memory(memory.swap_total),
                format::memory(memory.swap_free)
            ))
            .command("SystemPropertiesPerformance.exe"),
    ])
}

/// A PC without a page file, on which workers do not fit that are processes, as Python's trainers have
/// them: a run of ours starts there, but next to nothing may run beside it.
fn without(memory: &Memory, ranks: usize, intent: &Intent) -> Option<Finding> {
    let workers = intent.workers.filter(|_| intent.run && memory.swap_total == 0)?;
    let need = PROCESS.saturating_mul((workers * ranks) as u64);
    if memory.available >= need {
        return None;
    }
    let title = format!(
        "Windows has no page file and can commit only {} more: {} of CUDA as processes need about {}",
        format::memory(memory.available),
        format::count(workers * ranks, "worker"),
        format::memory(need)
    );
    let cause = "each worker process loads the CUDA libraries, and Windows refuses memory beyond RAM and \
                 page file with error 1455; yolo's workers are threads and need less";
    Some(Finding::new("windows.page-file", title).because(cause).command("SystemPropertiesPerformance.exe"))
}

//! Whether a rank's share of the batch fits into the memory of its GPU.

use crate::checks::{Answer, Check, gigabytes};
use crate::facts::Host;
use crate::finding::{Finding, Status};
use crate::intent::Intent;
use crate::needs;

pub(super) static CHECK: Check = Check {
    question: "Does the batch fit into the memory of each GPU?",
    reports: &["run.gpu-memory"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let Some(need) = needs::on_gpu(intent).filter(|_| intent.run && !intent.devices.is_empty()) else {
        return Ok(Vec::new());
    };
    let gpus = host.gpus()?;
    let smallest = intent
        .devices
        .iter()
        .filter_map(|&index| gpus.get(index))
        .filter(|gpu| gpu.lost().is_none())
        .filter_map(|gpu| Some((gpu.index, gpu.memory().ok()?)))
        .min_by_key(|(_, memory)| memory.free);
    let Some((index, memory)) = smallest.filter(|(_, memory)| need.bytes > memory.free) else {
        return Ok(Vec::new());
    };
    let batch = intent.images_a_step().unwrap_or_default();
    let title = format!(
        "a rank needs about {} of GPU {index}, which has {} free of {}",
        gigabytes(need.bytes),
        gigabytes(memory.free),
        gigabytes(memory.total)
    );
    // What other programs hold is their finding; here the batch is too large for an empty card.
    let status = if need.bytes > memory.total { Status::Error } else { Status::Warning };
    let finding = Finding::new("run.gpu-memory", title).status(status).seen(need.from.clone());
    let is_shared = host.is_wsl2().unwrap_or(false) || host.os().is_ok_and(|os| os == "windows");
    let finding = if is_shared {
        finding.because(
            "on Windows the driver moves what does not fit into the PC's memory, and training goes on many times \
             slower; or it ends with \"CUDA out of memory\"",
        )
    } else {
        finding
    };
    let ranks = intent.ranks_in_all();
    let fitting = std::iter::successors(Some(batch / 2), |half| (*half > ranks).then_some(half / 2))
        .map(|batch| batch / ranks * ranks)
        .find(|&batch| {
            let smaller = Intent { batch: i64::try_from(batch).ok(), ..intent.clone() };
            batch > 0 && needs::on_gpu(&smaller).is_some_and(|need| need.bytes <= memory.free)
        });
    Ok(vec![match fitting {
        Some(batch) => finding.command(format!("--batch {batch}")),
        None => finding.remedy("choose a smaller model or --imgsz: not even one image fits"),
    }])
}

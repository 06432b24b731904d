//! Whether a rank's share of the batch fits in its GPU's memory.

use yolo_base::format;

use crate::checks::gpu::processes::is_taken;
use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::memory_estimate;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Does the batch fit in each GPU's memory?",
    reports: &["run.gpu-memory"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let Some(split) = &intent.batch_split else { return of_share(host, intent, false) };
    let mut findings = Vec::new();
    // What `auto` gives a GPU follows from its memory.
    for (&device, share) in intent.devices.iter().zip(split.split(',').map(str::parse)) {
        let Ok(share) = share else { continue };
        let (devices, ranks, batch) = (vec![device], Some(1), Some(share));
        let one = Intent { devices, ranks, nnodes: None, batch, batch_split: None, ..intent.clone() };
        findings.extend(of_share(host, &one, true)?);
    }
    Ok(findings)
}

/// Whether equal shares fit. `is_split` is whether this is one of unequal ones.
fn of_share(host: &Host, intent: &Intent, is_split: bool) -> Answer {
    let Some(need) = memory_estimate::on_gpu(intent).filter(|_| intent.run && !intent.devices.is_empty())
    else {
        return Ok(Vec::new());
    };
    let gpus = host.gpus()?;
    let smallest = intent
        .devices
        .iter()
        .filter_map(|&index| gpus.get(index))
        .filter(|gpu| gpu.lost().is_none())
        .filter_map(|gpu| Some((gpu, gpu.memory().ok()?)))
        .min_by_key(|(_, memory)| memory.free);
    let Some((gpu, memory)) = smallest.filter(|(_, memory)| need.bytes > memory.free) else {
        return Ok(Vec::new());
    };
    // Memory used by other programs is a finding of its own, as long as the batch fits in an empty card.
    if is_taken(gpu, &memory) && need.bytes <= memory.total {
        return Ok(Vec::new());
    }
    let title = format!(
        "a rank needs about {} on GPU {}, but only {} of {} is free",
        format::memory(need.bytes),
        gpu.index,
        format::memory(memory.free),
        format::memory(memory.total)
    );
    let status = if need.bytes > memory.total { Status::Error } else { Status::Warning };
    let finding = Finding::new("run.gpu-memory", title).status(status).seen(need.from.clone());
    let is_shared = host.is_wsl2().unwrap_or(false) || host.os().is_ok_and(|os| os == "windows");
    let finding = if is_shared {
        finding.because(
            "on Windows the driver moves what does not fit to system memory, and training becomes many \
             times slower; or it fails with \"CUDA out of memory\"",
        )
    } else {
        finding
    };
    Ok(vec![match memory_estimate::fitting_batch(intent, memory.free) {
        Some(batch) if is_split => {
            let limit = format::count(batch, "image");
            finding.remedy(format!("give GPU {} at most {limit} in --batch-split", gpu.index))
        }
        Some(batch) => finding.options(&[format!("--batch {batch}")]),
        None => finding.remedy("choose a smaller model or --imgsz: not even one image fits"),
    }])
}

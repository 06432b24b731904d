//! Whether the driver answers, which GPUs there are, and whether others hold their memory.

use super::{Intent, gigabytes, skipped};
use crate::facts::{Fact, Facts, Gpu};
use crate::finding::{Finding, Status};

/// Memory that other processes may hold before it is worth a word: displays take this much.
const NOTEWORTHY: f64 = 0.1;

pub(super) fn check(facts: &Facts, intent: &Intent) -> Vec<Finding> {
    let known = match &facts.gpus {
        Fact::Known(known) => known,
        // A machine without a GPU trains on its processor: that is no error unless a GPU is meant.
        Fact::Unknown(why) => {
            let status = if intent.gpus.is_empty() { Status::Info } else { Status::Error };
            return vec![Finding::new("gpu.driver", status, why.clone())];
        }
    };
    let driver = known.driver.as_deref().unwrap_or("of unknown version");
    let cuda = known.cuda.map_or(String::new(), |(major, minor)| format!(", CUDA up to {major}.{minor}"));
    let mut findings = vec![Finding::new("gpu.driver", Status::Ok, format!("NVIDIA driver {driver}{cuda}"))];
    if known.gpus.is_empty() {
        findings.push(Finding::new("gpu.devices", Status::Warning, "the driver shows no GPU"));
    }
    for gpu in &known.gpus {
        findings.push(Finding::new("gpu.devices", Status::Ok, describe(gpu)));
        findings.extend(memory(gpu));
    }
    for index in intent.gpus.iter().filter(|&&index| known.gpus.iter().all(|gpu| gpu.index != index)) {
        let there = known.gpus.len();
        findings.push(Finding::new(
            "gpu.devices",
            Status::Error,
            format!("GPU {index} is not there: the driver shows {there}"),
        ));
    }
    findings
}

fn describe(gpu: &Gpu) -> String {
    let name = gpu.name.as_deref().unwrap_or("GPU of unknown name");
    let memory = gpu.memory.map_or(String::new(), |bytes| format!(", {}", gigabytes(bytes)));
    let capability = gpu
        .capability
        .map_or(String::new(), |(major, minor)| format!(", compute capability {major}.{minor}"));
    format!("GPU {}: {name}{memory}{capability}", gpu.index)
}

fn memory(gpu: &Gpu) -> Option<Finding> {
    let (Some(total), Some(used)) = (gpu.memory, gpu.memory_used) else {
        return Some(skipped(
            "gpu.memory",
            &format!("the driver does not tell the memory of GPU {}", gpu.index),
        ));
    };
    (used as f64 > total as f64 * NOTEWORTHY).then(|| {
        Finding::new(
            "gpu.memory",
            Status::Warning,
            format!(
                "GPU {}: {} of its {} are held by other processes",
                gpu.index,
                gigabytes(used),
                gigabytes(total)
            ),
        )
        .command("nvidia-smi")
    })
}

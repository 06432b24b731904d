//! Whether mixed precision works on the GPUs of this run: the chips of the GTX 16 series and their
//! relatives give NaN in half precision.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::{Finding, Status};
use crate::intent::Intent;

/// Cards with the chips TU116 and TU117.
const AFFECTED: [&str; 8] = ["GTX 1650", "GTX 1660", "GTX 1630", "T400", "T600", "T1000", "MX450", "MX550"];

pub(super) static CHECK: Check = Check {
    question: "Does mixed precision work on these GPUs?",
    reports: &["run.half-precision"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if intent.amp == Some(false)
        || intent.cpu
        || !matches!(host.nvml_state()?, crate::facts::NvmlState::Ready)
    {
        return Ok(Vec::new());
    }
    let used = |index: &usize| intent.devices.is_empty() || intent.devices.contains(index);
    let gpus = host.gpus()?;
    let affected = gpus.iter().filter(|gpu| used(&gpu.index)).find_map(|gpu| {
        let name = gpu.name().ok()?;
        AFFECTED.iter().any(|word| name.contains(word)).then_some((gpu.index, name))
    });
    let Some((index, name)) = affected else { return Ok(Vec::new()) };
    let title = format!("GPU {index}, {name}, computes NaN in half precision");
    let status = if intent.amp == Some(true) { Status::Warning } else { Status::Info };
    Ok(vec![Finding::new("run.half-precision", title).status(status)])
}

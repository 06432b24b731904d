//! Whether mixed precision works on the run's GPUs: the GTX 16 series and related chips produce NaN
//! in half precision.

use crate::checks::gpu::chosen;
use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

/// Cards with the chips TU116 and TU117.
const AFFECTED: [&str; 8] = ["GTX 1650", "GTX 1660", "GTX 1630", "T400", "T600", "T1000", "MX450", "MX550"];

/// The remedy if the plan is not known.
const HARMLESS: &str = "nothing for `yolo train`, which notices the NaN before it trains and uses single precision; in other \
    programs, turn off mixed precision";

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
    let gpus = chosen(host, intent, host.gpus()?);
    let affected: Vec<String> = gpus
        .iter()
        .filter_map(|gpu| Some(format!("GPU {} ({})", gpu.index, gpu.name().ok()?)))
        .filter(|shown| AFFECTED.iter().any(|word| shown.contains(word)))
        .collect();
    if affected.is_empty() {
        return Ok(Vec::new());
    }
    let verb = if affected.len() == 1 { "produces" } else { "produce" };
    let title = format!("{} {verb} NaN in half precision", affected.join(" and "));
    let finding = Finding::new("run.half-precision", title);
    Ok(vec![if intent.amp == Some(true) { finding } else { finding.status(Status::Info).remedy(HARMLESS) }])
}

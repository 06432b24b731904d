//! Whether a card is in TCC mode, in which it computes for Windows only: WSL reaches cards in WDDM mode.

use crate::checks::{Answer, Check};
use crate::facts::{Host, NvmlState};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Can WSL reach the cards of this PC?",
    reports: &["windows.tcc"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if !host.is_windows()? || intent.cpu || host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    // NVML calls the mode WDM.
    let gpus = host.gpus()?.into_iter().filter(|gpu| gpu.lost().is_none());
    let in_tcc = gpus.filter(|gpu| gpu.text("driver_model").is_ok_and(|model| model == "WDM"));
    Ok(in_tcc
        .map(|gpu| {
            let name = gpu.name().map_or(String::new(), |name| format!(" ({name})"));
            let title = format!("GPU {}{name} is in TCC mode, in which WSL does not see it", gpu.index);
            Finding::new("windows.tcc", title)
                .command(format!("nvidia-smi -g {} -dm 0", gpu.index))
                .command("shutdown /r /t 0")
        })
        .collect())
}

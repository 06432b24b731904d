//! Whether a card is in TCC mode, in which it computes for Windows only: WSL reaches cards in WDDM or MCDM mode.

use crate::checks::wsl::gpu_blocked::{SWITCH, mode};
use crate::checks::{Answer, Check};
use crate::facts::{Gpu, Host, NvmlState};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Can WSL reach the cards of this PC?",
    reports: &["windows.tcc"],
    preflight: true,
    run,
};

/// microsoft/WSL#13027.
const BESIDE_OTHERS: &str = "WSL, in which training runs, reaches only cards in WDDM or MCDM mode; beside a card in TCC mode it may \
                             not open the others either, and reports `Unable to determine the device handle` for all";

fn run(host: &Host, intent: &Intent) -> Answer {
    if !host.is_windows()? || intent.cpu || host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    // NVML calls the mode WDM.
    let is_in_tcc = |gpu: &Gpu| gpu.text("driver_model").is_ok_and(|model| model == "WDM");
    let gpus = host.gpus()?.into_iter().filter(|gpu| gpu.lost().is_none());
    let (in_tcc, others): (Vec<Gpu>, Vec<Gpu>) = gpus.partition(is_in_tcc);
    Ok(in_tcc
        .iter()
        .map(|gpu| {
            let name = gpu.name().map_or(String::new(), |name| format!(" ({name})"));
            let title = format!("GPU {}{name} is in TCC mode, in which WSL does not see it", gpu.index);
            let mode = gpu.name().map_or(0, |name| mode(&name));
            let finding = Finding::new("windows.tcc", title)
                .command(format!("nvidia-smi -g {} -dm {mode}", gpu.index))
                .command("shutdown /r /t 0");
            let finding = if mode == 2 { finding.remedy(SWITCH) } else { finding };
            if others.is_empty() { finding } else { finding.because(BESIDE_OTHERS) }
        })
        .collect())
}

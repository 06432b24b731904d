//! Whether Windows lost the GPU. WSL's kernel logs when the GPU's memory could not be kept resident,
//! which preceded such losses in reports (microsoft/WSL#41224).

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::{Host, nvml_error_text};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

pub(super) static CHECK: Check =
    Check { question: "Did Windows lose the GPU?", reports: &["wsl.gpu-lost"], preflight: false, run };

/// Lines about address space that are not the odd one of a healthy machine.
const MANY: usize = 100;

fn run(host: &Host, intent: &Intent) -> Answer {
    if !host.is_wsl2()? || intent.cpu {
        return Ok(Vec::new());
    }
    // The error is -12 (ENOMEM).
    let is_sign = |line: &&str| line.contains("make_resident") && line.contains("-12");
    let log = host.kernel_log();
    let signs: Vec<&str> = log.as_deref().unwrap_or_default().lines().filter(is_sign).collect();
    // The error is -75 (EOVERFLOW), after hundreds of programs with CUDA (microsoft/WSL#41176). A single one is logged on
    // healthy machines.
    let is_full = |line: &&str| line.contains("reserve_gpu_va") && line.contains("-75");
    let full: Vec<&str> = log.as_deref().unwrap_or_default().lines().filter(is_full).collect();
    let gpus = host.gpus().unwrap_or_default();
    let lost = gpus.iter().find_map(|gpu| Some((gpu.place(), gpu.lost()?)));
    let finding = match (lost, signs.last()) {
        // Windows rarely loses all cards at once, and 999 is what WSL reports beside a card in TCC mode
        // (microsoft/WSL#13027).
        (Some(_), None) if gpus.len() > 1 && gpus.iter().all(|gpu| gpu.lost() == Some(999)) => {
            let title = format!("none of the {} GPUs responds: {}", gpus.len(), nvml_error_text(999));
            Finding::new("wsl.gpu-lost", title)
                .because(
                    "one of the cards may be in TCC mode: WSL reaches cards in WDDM mode only, and beside one in TCC mode it \
                     may not open the others either; or Windows lost the cards",
                )
                .remedy(
                    "look at the driver model of the cards; switch one in TCC mode to WDDM in a Windows terminal as \
                     administrator (`nvidia-smi -g N -dm 0`), then restart Windows; if all are in WDDM mode, only \
                     restart Windows",
                )
                .command("nvidia-smi.exe --query-gpu=index,name,driver_model.current --format=csv")
        }
        (Some((place, code)), _) => {
            Finding::new("wsl.gpu-lost", format!("{place} does not respond: {}", nvml_error_text(code)))
        }
        (None, Some(_)) => {
            let times = format::count(signs.len(), "time");
            let title = format!("Windows could not keep GPU memory resident ({times} since WSL started)");
            Finding::new("wsl.gpu-lost", title)
                .status(Status::Warning)
                .because("programs asked for more GPU memory than Windows could keep on the card; those that did have failed")
                .remedy(
                    "close programs that hold the GPU's memory, in Windows too, and train with a smaller --batch; restart \
                     Windows only if CUDA fails in a new program as well",
                )
        }
        (None, None) if full.len() >= MANY || !full.is_empty() && has_failed(host) => {
            let (title, status) = if has_failed(host) {
                (
                    "WSL has no GPU address space left: CUDA fails with out of memory although the GPU has room",
                    Status::Warning,
                )
            } else {
                (
                    "WSL may soon have no GPU address space left, and CUDA then fails with out of memory",
                    Status::Info,
                )
            };
            let finding = Finding::new("wsl.gpu-lost", title)
                .status(status)
                .because(
                    "WSL's GPU device (dxg) does not give back all address space of programs that end, and after some hundred \
                     programs with CUDA none is left",
                )
                .remedy(
                    "shut WSL down from Windows between long series of runs, and update WSL; remove expandable_segments from \
                     PYTORCH_CUDA_ALLOC_CONF",
                )
                .command(super::SHUTDOWN);
            return Ok(vec![
                full.iter().rev().take(2).fold(finding, |finding, line| finding.seen(line.trim())),
            ]);
        }
        // Users may not be allowed to read the kernel log; a GPU that responds is not lost.
        (None, None) => return Ok(Vec::new()),
    };
    Ok(vec![signs.iter().rev().take(2).fold(finding, |finding, line| finding.seen(line.trim()))])
}

/// Whether a recorded program got no memory of the GPU from the driver. `CUDA out of memory` is PyTorch's own message,
/// mostly for a batch that is too large.
fn has_failed(host: &Host) -> bool {
    let says = |text: &str| text.contains("CUDA error: out of memory");
    let commands = host.recorded_commands();
    commands.iter().any(|(_, output)| says(&output.text()) || says(&output.error_text()))
}

//! Faults of WSL that bug reports of 2026 describe: a kernel on which runs hang, CUDA graphs that fail
//! on Blackwell, units of the container toolkit that start CUDA too early, and the limit of page-locked memory.
//! Most machines with these versions train, so this is information.

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::{Host, NvmlState};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Does this WSL have a fault that others have reported?",
    reports: &["wsl.kernel-hangs", "wsl.cuda-graphs", "wsl.cdi-refresh", "wsl.pinned-memory"],
    preflight: false,
    run,
};

/// microsoft/WSL#41017 and #41361.
const HANGS: &str = "6.18.33";
/// The first WSL that captures CUDA graphs on compute capability 12 (microsoft/WSL#14452).
const GRAPHS: [u32; 4] = [2, 7, 0, 0];
/// Units of the container toolkit that ask CUDA for devices when WSL starts.
const UNITS: [&str; 2] = ["nvidia-cdi-refresh.path", "nvidia-cdi-refresh.service"];
const SYSTEM: &str = "/etc/systemd/system";
/// What all programs together were seen to get (FreeToken#233): 0.75 to 1 GiB.
const PINNED: u64 = 768 << 20;
/// Batches that a loader of PyTorch keeps ready for each worker.
const AHEAD: u64 = 2;

fn run(host: &Host, intent: &Intent) -> Answer {
    if intent.cpu || !host.is_wsl2()? || host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    let mut findings = Vec::new();
    let kernel = host.kernel_release()?;
    if kernel.starts_with(HANGS) {
        let version = kernel.split('-').next().unwrap_or_default();
        let title = format!("runs were reported to hang on WSL's kernel {version}");
        findings.push(
            Finding::new("wsl.kernel-hangs", title).command("wsl.exe --update").command(super::SHUTDOWN),
        );
    }
    let gpus = host.gpus()?;
    let has_blackwell = gpus.iter().any(|gpu| gpu.capability().is_ok_and(|(major, _)| major == 12));
    if has_blackwell
        && let Ok(Some(Some(versions))) = host.wsl_versions()
        && versions.wsl.0 < GRAPHS
    {
        let title = format!("WSL {} cannot capture CUDA graphs on this GPU", versions.wsl);
        findings.push(
            Finding::new("wsl.cuda-graphs", title).command("wsl.exe --update").command(super::SHUTDOWN),
        );
    }
    let enabled: Vec<&str> = UNITS.into_iter().filter(|unit| is_enabled(host, unit)).collect();
    if has_blackwell && !host.is_container() && !enabled.is_empty() {
        let title = format!("{} may start CUDA before the Windows driver is ready", enabled.join(" and "));
        let names = UNITS.join(" ");
        findings.push(Finding::new("wsl.cdi-refresh", title).command(format!("sudo systemctl mask {names}")));
    }
    findings.extend(pinned(intent));
    Ok(findings)
}

/// Whether a unit starts with the system, and is not masked.
fn is_enabled(host: &Host, unit: &str) -> bool {
    let target = |path: String| host.link(&path).ok().flatten();
    let is_masked = target(format!("{SYSTEM}/{unit}")).is_some_and(|target| target == "/dev/null");
    !is_masked && target(format!("{SYSTEM}/multi-user.target.wants/{unit}")).is_some()
}

/// What a loader that pins each batch wants. Ours has a limit of its own.
fn pinned(intent: &Intent) -> Option<Finding> {
    let workers = intent.workers.filter(|_| intent.run)? as u64;
    let images = intent.images_a_step()?.div_ceil(intent.ranks_in_all()) as u64;
    let side = intent.largest_pixels() as u64;
    let want = images * 3 * side * side * workers * AHEAD * intent.ranks_here() as u64;
    if want <= PINNED {
        return None;
    }
    let title = format!(
        "WSL gives all programs together less than 1 GiB of pinned (page-locked) memory; a loader that pins every \
         batch of {} would want {}",
        format::count(workers as usize, "worker"),
        format::memory(want)
    );
    Some(Finding::new("wsl.pinned-memory", title))
}

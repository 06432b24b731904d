//! Whether libtorch is available for this operating system and CPU.

use crate::checks::{Answer, Check};
use crate::facts::{Host, Wsl};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Is libtorch available for this operating system and CPU?",
    reports: &["system.platform", "system.unsupported"],
    preflight: true,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    let (os, arch) = (host.os()?, host.arch()?);
    let system = host.system().unwrap_or_default();
    let name = system.name.or_else(|| distribution_name(host)).unwrap_or_else(|| os.clone());
    let wsl = match host.wsl() {
        Ok(Some(Wsl::One)) => " in WSL 1",
        Ok(Some(Wsl::Two)) => " in WSL 2",
        _ => "",
    };
    let cores = system
        .cores
        .map_or(String::new(), |cores| format!(", {}", yolo_base::format::count(cores as usize, "core")));
    let title = format!("{name}{wsl}, {arch}{cores}");
    let finding = if host.has_libtorch_build() {
        Finding::ok("system.platform", title)
    } else if os == "macos" {
        Finding::new("system.unsupported", format!("yolo has no libtorch for macOS ({title})"))
    } else if host.is_arm_windows() {
        let title = format!(
            "yolo has no libtorch for the ARM processor of this PC, on which Windows emulates {arch} ({title})"
        );
        Finding::new("system.unsupported", title).remedy(
            "train on another machine (64-bit x86 with Linux, or with Windows and WSL): WSL on this PC also runs ARM Linux",
        )
    } else {
        let finding =
            Finding::new("system.unsupported", format!("yolo has no libtorch for {arch} ({title})"));
        if host.exists("/etc/nv_tegra_release") == Ok(true) {
            finding.remedy(
                "train on another machine (64-bit x86 with Linux); on this Jetson, PyTorch runs in the build that \
                 NVIDIA makes for its JetPack release",
            )
        } else if arch == "aarch64" && is_of_nvidia(host) {
            finding.remedy(
                "train on another machine (64-bit x86 with Linux); on this one PyTorch runs in a virtual environment, if the build \
                 with CUDA is installed (`pip install torch torchvision --index-url https://download.pytorch.org/whl/cu130`; PyPI's \
                 may be one for the CPU only, for which torch.version.cuda is None)",
            )
        } else {
            finding
        }
    };
    let kernel = host.kernel_release().map(|kernel| format!("kernel {kernel}"));
    Ok(vec![kernel.into_iter().fold(finding, Finding::seen)])
}

/// An ARM machine with a GPU of NVIDIA: DGX Spark (GB10), GH200, GB200.
fn is_of_nvidia(host: &Host) -> bool {
    host.exists("/etc/dgx-release") == Ok(true)
        || host
            .folder("/proc/driver/nvidia/gpus")
            .is_ok_and(|cards| cards.is_some_and(|cards| !cards.is_empty()))
}

/// The name of the distribution, as it reports it.
fn distribution_name(host: &Host) -> Option<String> {
    let text = host.text("/etc/os-release").ok()??;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim().trim_matches(['"', '\'']).to_owned()).filter(|name| !name.is_empty())
}

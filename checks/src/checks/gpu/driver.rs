//! Whether the NVIDIA driver answers, and if not, why: no driver at all, a module that is not
//! loaded, or library and module of different versions. Two cases look alike from afar: NVML that
//! refuses because of the versions, and a driver that was never installed.

use crate::checks::{Answer, Check};
use crate::facts::{Host, NvmlState};
use crate::finding::{Finding, Status};
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Does the NVIDIA driver answer?",
    reports: &[
        "gpu.driver",
        "gpu.driver-missing",
        "gpu.driver-not-loaded",
        "gpu.driver-mismatch",
        "gpu.driver-silent",
    ],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let needed = !intent.devices.is_empty();
    // Without a card, or with a run on the processor, a missing driver is no trouble.
    let card = nvidia_card(host);
    let status = match card {
        _ if needed => Status::Error,
        Some(_) if !intent.cpu => Status::Error,
        _ => Status::Info,
    };
    // A driver that was installed and fails is a sick one, whatever the bus shows.
    let sick = if intent.cpu { Status::Info } else { Status::Error };
    let finding = match host.nvml_state()? {
        NvmlState::Ready => return Ok(vec![healthy(host)]),
        // WSL has its own check of the driver that Windows brings.
        _ if host.is_wsl2().unwrap_or(false) => return Ok(Vec::new()),
        NvmlState::NoLibrary => {
            let title = match (&card, needed) {
                (Some(_), _) => "there is an NVIDIA card, but no driver for it",
                (None, true) => "the run names a GPU, but there is no NVIDIA driver",
                (None, false) => "no NVIDIA driver: runs use the processor",
            };
            let finding = Finding::new("gpu.driver-missing", title).status(status);
            match card {
                Some(_) => finding,
                None => {
                    finding.because("training runs on the processor, many times slower than on a GPU").remedy(
                        "nothing on a machine without an NVIDIA card; else install its driver and restart",
                    )
                }
            }
        }
        NvmlState::Failed(9) => {
            let title = "the NVIDIA driver is installed, but its kernel module is not loaded";
            Finding::new("gpu.driver-not-loaded", title)
                .status(sick)
                .command("sudo modprobe nvidia")
                .command("nvidia-smi")
        }
        NvmlState::Failed(18) => mismatch(host).status(sick),
        NvmlState::Failed(code) => {
            let title = format!("the NVIDIA driver does not answer: {}", crate::facts::nvml_words(code));
            Finding::new("gpu.driver-silent", title).status(sick).command("nvidia-smi")
        }
    };
    Ok(vec![card.into_iter().fold(finding, |finding, card| finding.seen(format!("PCI device {card}")))])
}

fn healthy(host: &Host) -> Finding {
    let version =
        host.driver_version().map_or("of unknown version".to_owned(), |version| version.to_string());
    let cuda = host.driver_cuda().map_or(String::new(), |cuda| format!(", CUDA up to {cuda}"));
    let whose = if host.is_wsl2().unwrap_or(false) { "Windows NVIDIA driver" } else { "NVIDIA driver" };
    Finding::ok("gpu.driver", format!("{whose} {version}{cuda}"))
}

fn mismatch(host: &Host) -> Finding {
    let module = host.driver_module_version().ok().flatten();
    let library = host.library("libnvidia-ml.so.1").ok().and_then(|found| found.into_iter().next());
    let library = library.and_then(|library| library.version);
    let title = match (&module, &library) {
        (Some(module), Some(library)) => {
            format!("the NVIDIA driver's library is {library}, its loaded kernel module {module}")
        }
        (Some(module), None) => {
            format!("the NVIDIA driver's kernel module is {module}, its library another version")
        }
        _ => "the NVIDIA driver's library and its kernel module are of different versions".to_owned(),
    };
    Finding::new("gpu.driver-mismatch", title).command("sudo reboot")
}

/// The address of an NVIDIA display device on the PCI bus.
fn nvidia_card(host: &Host) -> Option<String> {
    let root = "/sys/bus/pci/devices";
    let devices = host.folder(root).ok()??;
    devices.into_iter().find(|device| {
        let file =
            |name: &str| host.text(&format!("{root}/{device}/{name}")).ok().flatten().unwrap_or_default();
        file("vendor").trim() == "0x10de" && file("class").trim().starts_with("0x03")
    })
}

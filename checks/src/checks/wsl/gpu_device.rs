//! Whether the GPU is available in WSL: the device /dev/dxg, the Windows driver's libraries, and the
//! driver's answers. Each cause gives one finding: a setting comes before a missing device, a
//! missing device before a driver that does not respond. The kernel log lines `dxgk … Ioctl failed`
//! also appear on healthy machines, so they are only evidence if the driver does not respond.

use super::gpu_blocked::SERVER_2022;
use super::{gpu_blocked as blocked, linux_driver};
use crate::checks::gpu::chosen;
use crate::checks::{Answer, Check};
use crate::facts::{Fact, Gpu, Host, NvmlState, nvml_error_text};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

/// The device through which WSL uses the GPU.
const DEVICE: &str = "/dev/dxg";
/// Calls that NVML does not support in WSL (NVIDIA, CUDA on WSL User Guide, section 5.2).
const UNANSWERED: [&str; 2] = ["processes", "power_limit"];

/// Windows 10 21H2, the first Windows that gives WSL a GPU (Microsoft, "GPU accelerated ML training in WSL").
const WITH_GPU: u32 = 19044;

pub(super) static CHECK: Check = Check {
    question: "Is the GPU available in WSL?",
    reports: &[
        "wsl.gpu",
        "wsl.gpu-switched-off",
        "wsl.gpu-device-missing",
        "wsl.gpu-device-closed",
        "wsl.no-windows-driver",
        "wsl.gpu-blocked",
        "wsl.gpu-channel",
        "wsl.driver-silent",
        "wsl.old-card",
    ],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if intent.cpu {
        return Ok(Vec::new());
    }
    if host.is_windows()? {
        return Ok(on_windows(host, intent));
    }
    if !host.is_wsl2()? {
        return Ok(Vec::new());
    }
    let state = state(host);
    if state == Ok(NvmlState::Ready) {
        return Ok(answering(host));
    }

    let is_there = host.exists(DEVICE);
    // A container has the device if it was started with GPUs; the container check covers that.
    if is_there == Ok(false) && host.is_container() {
        return Ok(Vec::new());
    }
    // If the device is unknown, a setting is enough; if it exists, the setting is newer than the running
    // VM.
    if is_there != Ok(true)
        && let Some(finding) = switched_off(host)
    {
        return Ok(vec![finding]);
    }
    if is_there == Ok(false) {
        return Ok(vec![no_device(host)]);
    }
    if let Some(finding) = switched_off_here(host).filter(|_| has_no_libraries(host, &state)) {
        return Ok(vec![finding]);
    }
    // If the device is unknown, a driver that reports an error is enough.
    if let Ok(Some(stat)) = host.stat(DEVICE)
        && (stat.readable == Some(false) || stat.writable == Some(false))
    {
        return Ok(vec![closed(stat.mode.as_deref())]);
    }
    match state? {
        NvmlState::Ready => Ok(Vec::new()),
        NvmlState::NoLibrary => {
            let brought = host.exists(&format!("{}/libcuda.so.1", super::LIBRARIES))?;
            // The loader check reports a library that exists but is not found.
            if brought || host.is_container() {
                return Ok(Vec::new());
            }
            Ok(vec![no_driver(host, intent)])
        }
        // A Linux driver explains every error, and its own check reports it.
        NvmlState::Failed(_) if !host.is_container() && linux_driver::is_installed(host) => Ok(Vec::new()),
        // The channel to Windows broke while WSL was running: the driver itself denies nothing.
        NvmlState::Failed(_) if !broken_channel(host).is_empty() => {
            let title = "WSL has lost its connection to the Windows GPU driver";
            let finding = Finding::new("wsl.gpu-channel", title);
            let finding = broken_channel(host).into_iter().take(2).fold(finding, Finding::seen);
            Ok(vec![finding.command(super::SHUTDOWN)])
        }
        NvmlState::Failed(17) => Ok(vec![blocked::finding(host)]),
        NvmlState::Failed(code) => {
            let title =
                format!("the Windows NVIDIA driver does not respond in WSL: {}", nvml_error_text(code));
            let said =
                host.kernel_lines(&["dxgk"]).into_iter().filter(|line| line.contains("failed")).take(3);
            let finding = said.fold(Finding::new("wsl.driver-silent", title), Finding::seen);
            Ok(vec![finding.command(super::SHUTDOWN)])
        }
    }
}

/// Messages of the kernel about a channel that fails for every new program.
fn broken_channel(host: &Host) -> Vec<String> {
    host.kernel_lines(&["dxgvmb_send_create_process: create_process failed"])
}

/// How NVML starts; a recording without NVML may contain nvidia-smi's output instead.
fn state(host: &Host) -> Fact<NvmlState> {
    host.nvml_state().or_else(|why| {
        let said = host.recorded_texts("nvidia-smi").join("\n");
        if said.contains("blocked by the operating system") {
            Ok(NvmlState::Failed(17))
        } else if ["Failed to initialize NVML", "couldn't communicate"].iter().any(|words| said.contains(words))
            // An old copy of the tool crashes while CUDA works.
            || said.contains("Segmentation fault") && !linux_driver::has_own_tool(host)
        {
            Ok(NvmlState::Failed(999))
        } else {
            Err(why)
        }
    })
}

/// Windows has no NVIDIA driver, which is not a problem on a PC without an NVIDIA card.
fn no_driver(host: &Host, intent: &Intent) -> Finding {
    let store = host.folder("/usr/lib/wsl/drivers").ok().flatten().unwrap_or_default();
    let nvidia = store.into_iter().find(|name| name.starts_with("nv"));
    let (title, status) = match &nvidia {
        _ if !intent.devices.is_empty() => {
            ("the run uses a GPU, but the Windows NVIDIA driver is not available in WSL", Status::Error)
        }
        Some(_) => ("the Windows NVIDIA driver is too old for WSL", Status::Warning),
        None => ("the Windows NVIDIA driver is not available in WSL: runs use the CPU", Status::Info),
    };
    let finding = Finding::new("wsl.no-windows-driver", title).status(status);
    nvidia.into_iter().fold(finding, |finding, name| finding.seen(format!("/usr/lib/wsl/drivers/{name}")))
}

fn answering(host: &Host) -> Vec<Finding> {
    let gpus = host.gpus().unwrap_or_default();
    // The check of lost GPUs reports that none can be opened.
    if !gpus.is_empty() && gpus.iter().all(|gpu| gpu.lost().is_some()) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let driver = host.driver_version().map_or("(unknown version)".to_owned(), |version| version.to_string());
    let mut healthy =
        Finding::ok("wsl.gpu", format!("the GPU is available in WSL, through Windows driver {driver}"));
    for gpu in gpus {
        if UNANSWERED.iter().any(|call| matches!(gpu.error(call), Some(3 | 999))) {
            healthy = healthy.seen(format!(
                "GPU {}: the driver does not report processes or power, which is normal in WSL",
                gpu.index
            ));
        }
        findings.extend(too_old(&gpu));
    }
    findings.insert(0, healthy);
    findings
}

/// A card before Pascal.
fn too_old(gpu: &Gpu) -> Option<Finding> {
    let (major, minor) = gpu.capability().ok().filter(|(major, _)| *major < 6)?;
    let name = gpu.name().unwrap_or_else(|_| "a card".to_owned());
    let title = format!(
        "GPU {}, {name}, has compute capability {major}.{minor}: WSL supports 6.0 (Pascal) and \
         later",
        gpu.index
    );
    Some(Finding::new("wsl.old-card", title))
}

fn closed(mode: Option<&str>) -> Finding {
    let mode = mode.map_or(String::new(), |mode| format!(" (its mode is {mode})"));
    Finding::new("wsl.gpu-device-closed", format!("this user may not open {DEVICE}{mode}"))
        .command(format!("sudo chmod 666 {DEVICE}"))
}

/// Whether WSL has not mounted the Windows driver's libraries. If that is unknown, NVML tells.
fn has_no_libraries(host: &Host, state: &Fact<NvmlState>) -> bool {
    let there = host.exists(&format!("{}/libcuda.so.1", super::LIBRARIES));
    there.map_or_else(|_| *state == Ok(NvmlState::NoLibrary), |there| !there)
}

/// The file of this distribution: it leaves the device there, and decides whether WSL mounts the driver's libraries.
fn switched_off_here(host: &Host) -> Option<Finding> {
    if host.is_container() || host.wsl_conf_flag("gpu", "enabled") != Some(false) {
        return None;
    }
    let config = host.wsl_conf().ok()?;
    let setting = format!("[gpu] enabled={}", config.value("gpu", "enabled")?);
    let finding =
        Finding::new("wsl.gpu-switched-off", format!("`{setting}` in /etc/wsl.conf disables the GPU in WSL"));
    let finding = finding
        .because(
            "with this setting WSL does not mount the Windows driver's libraries at /usr/lib/wsl/lib, in this distribution \
             only; the driver itself is not at fault",
        )
        .remedy(
            "remove the setting from /etc/wsl.conf, then shut WSL down from Windows, so that it reads the file again \
             (`wsl.exe --terminate` with the name of this distribution ends this one alone)",
        );
    Some(finding.command("sudo nano /etc/wsl.conf").command(super::SHUTDOWN))
}

/// A setting that disables the GPU in WSL.
fn switched_off(host: &Host) -> Option<Finding> {
    if let Some(finding) = switched_off_here(host) {
        return Some(finding);
    }
    let config = host.wslconfig().ok();
    let set = |key: &str, off: bool| config.as_ref().and_then(|config| config.flag(key)) == Some(off);
    let file = config.as_ref().map_or(".wslconfig".to_owned(), |config| host.windows_path(&config.path));
    let setting = if set("gpuSupport", false) {
        "gpuSupport=false"
    } else if set("safeMode", true) {
        "safeMode=true"
    } else {
        return None;
    };
    let title = format!("`{setting}` in {file} disables the GPU in WSL");
    let finding = Finding::new("wsl.gpu-switched-off", title)
        .remedy(format!("remove that line, then shut WSL down from Windows, so that it reads {file} again"));
    Some(finding.command(super::SHUTDOWN))
}

/// What a Windows prompt knows about the GPU that a run in WSL will have.
fn on_windows(host: &Host, intent: &Intent) -> Vec<Finding> {
    let gpus = host.gpus().unwrap_or_default();
    // The check of the installation reports a Windows without WSL 2.
    if gpus.is_empty() || host.old_windows().is_some() {
        return Vec::new();
    }
    if let Some(build) = build_without_gpu(host) {
        let title = format!("{} does not give WSL a GPU", name_of(build));
        return vec![newer_windows(Finding::new("wsl.gpu-device-missing", title), build)];
    }
    chosen(host, intent, gpus).iter().filter_map(too_old).collect()
}

/// The build of a Windows that gives WSL no GPU.
fn build_without_gpu(host: &Host) -> Option<u32> {
    host.windows_build().ok().filter(|&build| build < WITH_GPU || build == SERVER_2022)
}

/// `Windows 10 version 2004 (build 19041)`
fn name_of(build: u32) -> String {
    let version = match build {
        SERVER_2022 => return format!("Windows Server 2022 (build {build})"),
        18362 => " version 1903",
        18363 => " version 1909",
        19041 => " version 2004",
        19042 => " version 20H2",
        19043 => " version 21H1",
        _ => "",
    };
    format!("Windows 10{version} (build {build})")
}

fn newer_windows(finding: Finding, build: u32) -> Finding {
    if build == SERVER_2022 {
        return finding
            .because("among the editions of Windows Server, only 2025 gives GPUs to WSL")
            .remedy("use Windows Server 2025, Windows 11 or Linux");
    }
    finding
        .because("Windows gives GPUs to WSL from Windows 10 21H2 (build 19044) and Windows 11 on")
        .remedy(
            "update Windows to 22H2 or Windows 11 with Windows Update, then install NVIDIA's driver for Windows and update \
             WSL in a Windows terminal",
        )
        .command("wsl.exe --update")
}

/// There is no device, and no setting explains it: an old Windows, driver or kernel.
fn no_device(host: &Host) -> Finding {
    if let Some(build) = build_without_gpu(host) {
        let title = format!("{DEVICE} does not exist: {} does not give WSL a GPU", name_of(build));
        let finding = newer_windows(Finding::new("wsl.gpu-device-missing", title), build);
        return if build == SERVER_2022 { finding } else { finding.command(super::SHUTDOWN) };
    }
    let finding = Finding::new(
        "wsl.gpu-device-missing",
        format!("{DEVICE} does not exist: no GPU is available in WSL"),
    );
    let config = host.wslconfig().ok();
    let kernel = config.as_ref().and_then(|config| config.value("kernel"));
    let finding = match kernel {
        Some(kernel) => finding
            .seen(format!(".wslconfig: kernel={kernel}"))
            .because("WSL runs a custom kernel, which seems to be built without CONFIG_DXGKRNL")
            .remedy(
                "remove `kernel=` from .wslconfig, or build that kernel with CONFIG_DXGKRNL; then shut \
                 WSL down",
            ),
        None => finding.command("wsl.exe --update"),
    };
    finding.command(super::SHUTDOWN)
}

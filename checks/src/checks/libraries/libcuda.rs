//! Whether the loader finds libcuda, the driver's own library; [`other_libcuda`] looks at one that it finds instead. WSL
//! has its own checks, because its libcuda comes from Windows.

use super::{driver_folder, empty_library, other_libcuda};
use crate::checks::gpu::{is_native_linux, pci};
use crate::checks::{Answer, Check};
use crate::facts::{Family, Host, NvmlState, Place, Version};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::start_container::{Start, start_with};

pub(super) static CHECK: Check = Check {
    question: "Does the loader find the driver's libcuda?",
    reports: &["libraries.libcuda-missing", "libraries.libcuda-stub"],
    preflight: true,
    run,
};

pub(super) const NAME: &str = driver_folder::NAME;

/// What the container toolkit mounts.
const CAPABILITIES: &str = "NVIDIA_DRIVER_CAPABILITIES";

fn run(host: &Host, intent: &Intent) -> Answer {
    // In a container in WSL, the libraries are mounted as in any other container.
    if intent.cpu || !is_native_linux(host) && !is_container_in_wsl(host) {
        return Ok(Vec::new());
    }
    let state = host.nvml_state()?;
    // There is no module of NVIDIA here: the check of the driver says what is missing.
    if host.has_gpu_of_windows_host() {
        return Ok(Vec::new());
    }
    let is_loaded = || matches!(host.driver_module_version(), Ok(Some(_)));
    if state == NvmlState::NoLibrary
        && is_loaded()
        && let Some(folder) = driver_folder::unsearched(host)
    {
        return Ok(vec![driver_folder::finding(host, &folder)]);
    }
    if matches!(state, NvmlState::NoLibrary | NvmlState::Ready)
        && has_device_file(host)
        && let Some(finding) = empty_library::find(host)
    {
        return Ok(vec![finding]);
    }
    if is_left_out(host) {
        return Ok(vec![without_toolkit(host)]);
    }
    if let (NvmlState::NoLibrary, false, Ok(Some(module))) =
        (&state, host.is_container() || pci::cards(host).is_empty(), host.driver_module_version())
    {
        return Ok(vec![without_libraries(host, &module)]);
    }
    if state != NvmlState::Ready || host.gpus()?.is_empty() {
        return Ok(Vec::new());
    }
    let Some(first) = host.library(NAME)?.into_iter().next() else {
        return Ok(vec![match driver_folder::unsearched(host) {
            Some(folder) => driver_folder::finding(host, &folder),
            None => missing(host),
        }]);
    };
    Ok(other_libcuda::find(host, &first).into_iter().collect())
}

/// Whether this container has a GPU's device file, but none of the driver's libraries. Apptainer shows the host's device
/// files to every container.
pub(in crate::checks) fn is_left_out(host: &Host) -> bool {
    let is_asked = host.is_container() && !matches!(host.place(), Place::Apptainer | Place::Enroot);
    is_asked
        && host.nvml_state() == Ok(NvmlState::NoLibrary)
        && has_device_file(host)
        && host.library(NAME).is_ok_and(|found| found.is_empty())
}

fn has_device_file(host: &Host) -> bool {
    matches!(host.card_file(), Ok(Some(_)))
        || host.is_wsl2() == Ok(true) && host.exists("/dev/dxg") == Ok(true)
}

/// A container that was given device files alone.
fn without_toolkit(host: &Host) -> Finding {
    let title = "this container has the device files of a GPU, but not the driver's libraries (libcuda.so.1, libnvidia-ml.so.1)";
    let finding = Finding::new("libraries.libcuda-missing", title);
    let has_capabilities = host.env(CAPABILITIES).is_ok_and(|value| value.is_some());
    let finding = match (host.place(), host.driver_module_version()) {
        (Place::Lxc, Ok(Some(module))) => {
            return finding
                .remedy(format!(
                    "install the driver's libraries of version {module}, which the host's module has, in this container, \
                     without a kernel module"
                ))
                .command(format!("sh NVIDIA-Linux-x86_64-{module}.run --no-kernel-module"));
        }
        (Place::Docker | Place::DockerInWsl | Place::Podman, _) if !has_capabilities => finding
            .because(
                "device files alone, as `--device` and `devices:` in a compose file give them, bring no libraries: these come \
                 from the host, through the NVIDIA Container Toolkit",
            )
            .remedy(
                "install the NVIDIA Container Toolkit on the host, and start a new container with GPUs instead of device files: \
                 in a compose file under `deploy.resources.reservations.devices`",
            ),
        (Place::Pod, _) if !has_capabilities && host.rental().is_none() => return without_runtime_of_node(finding),
        _ => without_compute(host, finding),
    };
    start_with(host, finding, Start::Libraries)
}

/// The finding about a pod with the files that the device plugin chose, and without the libraries that its runtime brings.
pub(in crate::checks) fn without_runtime_of_node(finding: Finding) -> Finding {
    finding
        .because(
            "the device plugin gave the pod the files, and the container runtime of the node did not bring the libraries: it has neither CDI \
             nor NVIDIA's runtime turned on",
        )
        .remedy(
            "set NVIDIA's runtime class in the pod's specification; or turn CDI on in containerd of the node (`enable_cdi = true` and \
             `cdi_spec_dirs`; containerd 2 has it on), as NVIDIA's GPU Operator does with `cdi.enabled=true`",
        )
        .command("runtimeClassName: nvidia")
}

fn is_container_in_wsl(host: &Host) -> bool {
    host.is_container() && host.is_wsl2() == Ok(true)
}

/// Path and version of the libcuda that the loader finds, if it is from `cuda-compat`.
pub(super) fn of_compat(host: &Host) -> Option<(String, Version)> {
    let first = host.library(NAME).ok()?.into_iter().next();
    let first = first.filter(|first| other_libcuda::lies_in(first, "compat"))?;
    Some((first.path.clone(), other_libcuda::version(&first)?))
}

/// The module is loaded, but the loader does not find the libraries that go with it.
fn without_libraries(host: &Host, module: &Version) -> Finding {
    let title = format!(
        "the NVIDIA driver's kernel module {module} is loaded, but the loader finds neither libcuda.so.1 nor \
         libnvidia-ml.so.1"
    );
    let finding = Finding::new("libraries.libcuda-missing", title);
    if host.family() == Some(Family::NixOs) {
        return driver_folder::finding(host, "/run/opengl-driver/lib");
    }
    if driver_folder::is_in_flatpak(host) {
        return finding
            .because("this terminal runs in Flatpak's sandbox, which has libraries of its own")
            .remedy("start yolo in a terminal outside of Flatpak")
            .command("flatpak-spawn --host bash");
    }
    let finding =
        finding.remedy(format!("install the driver's libraries in version {module}, that of the module"));
    let branch = module.major();
    let package = match host.family() {
        Some(Family::Ubuntu | Family::OnUbuntu) => {
            format!("sudo apt install libnvidia-compute-{branch} nvidia-utils-{branch}")
        }
        Some(Family::Debian) => "sudo apt install libcuda1 nvidia-smi".to_owned(),
        Some(Family::Fedora) => "sudo dnf install xorg-x11-drv-nvidia-cuda".to_owned(),
        Some(Family::Leap | Family::Tumbleweed) => "sudo zypper install nvidia-compute-utils-G06".to_owned(),
        Some(Family::Arch) => "sudo pacman -Syu nvidia-utils".to_owned(),
        _ => return finding,
    };
    finding.command(package)
}

/// What the container toolkit mounts is decided by a variable, which Compose sets from `capabilities`.
fn without_compute(host: &Host, finding: Finding) -> Finding {
    let value = host.env(CAPABILITIES).ok().flatten();
    let names = |value: &str| value.split(',').any(|one| matches!(one.trim(), "compute" | "all"));
    match value {
        Some(value) if !names(&value) => finding
            .seen(format!("{CAPABILITIES}={value}"))
            .because(format!(
                "the container was started with the driver capabilities \"{value}\", without compute, so libcuda was \
                 not mounted; the image, -e {CAPABILITIES}=… or `capabilities: [gpu, …]` in a compose file decides this"
            ))
            .remedy(
                "start a new container with the compute capability: in a compose file, write \
                 `capabilities: [gpu, compute, utility]`",
            ),
        _ => finding.remedy("start the container with the driver's compute capability"),
    }
}

fn missing(host: &Host) -> Finding {
    let title =
        "nvidia-smi works, but the loader does not find libcuda.so.1, the driver library that CUDA needs";
    let finding = Finding::new("libraries.libcuda-missing", title);
    if host.is_container() {
        return start_with(host, without_compute(host, finding), Start::Libraries);
    }
    let branch = host.driver_version().map_or(0, |version| version.major());
    let ubuntu = format!("sudo apt install libnvidia-compute-{branch}");
    let debian = match host.family() {
        Some(Family::Ubuntu | Family::OnUbuntu) => ubuntu.as_str(),
        _ => "sudo apt install libcuda1",
    };
    // On RHEL and Amazon Linux the driver comes from NVIDIA's repository, which has other names than RPM Fusion.
    let red_hat = match host.family() {
        Some(Family::RedHat | Family::Amazon) => "sudo dnf install nvidia-driver-cuda-libs",
        _ => "sudo dnf install xorg-x11-drv-nvidia-cuda-libs",
    };
    let package = host.package_command([
        debian,
        red_hat,
        "sudo zypper install nvidia-compute-G06",
        "sudo pacman -Syu nvidia-utils",
    ]);
    package.into_iter().fold(finding, Finding::command).command("sudo ldconfig")
}

//! Whether a container has its GPUs: it may have been started without them or without the driver's
//! libraries, or lost them while running. Containers in WSL have /dev/dxg instead of NVIDIA's device
//! files.

use crate::checks::gpu::{module_of_host, pci};
use crate::checks::libraries::{driver_folder, libcuda};
use crate::checks::{Answer, Check};
use crate::facts::{Container, Host, NvmlState, Place, RUNTIME_CONFIG, Variant, nvml_error_text};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::restart::{restart, restart_container};
use crate::remedies::start_container::{Start, start_with};
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Was this container started with its GPUs?",
    reports: &["container.gpus-missing", "container.gpus-lost"],
    preflight: true,
    run,
};

/// Where the device plugin of a cluster mounts the names of a pod's cards, if it does not use the variable.
const OF_PLUGIN: &str = "/var/run/nvidia-container-devices";

fn run(host: &Host, intent: &Intent) -> Answer {
    if host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let Some(container) = host.container()? else { return Ok(Vec::new()) };
    let device = host.card_file();
    let has_device = device.as_ref().ok().map(Option::is_some);
    let state = match host.nvml_state() {
        Ok(state) => state,
        // Without a device file NVML has nothing to report.
        Err(_) if has_device == Some(false) && host.exists("/dev/dxg") != Ok(true) => NvmlState::NoLibrary,
        Err(why) => return Err(why),
    };
    match state {
        // The driver check reports version mismatches and missing permissions.
        NvmlState::Ready | NvmlState::Failed(18 | 4) => Ok(Vec::new()),
        // So does it if the host has not loaded its module.
        state if module_of_host::not_loaded(host, &state).is_some() => Ok(Vec::new()),
        NvmlState::Failed(code) if has_device.unwrap_or(code == 999) => {
            Ok(vec![lost(host, code, device.ok().flatten())])
        }
        // The check of libcuda reports libraries that are missing, and those that are there, but not found.
        NvmlState::NoLibrary if !intent.cpu && libcuda::is_left_out(host) => Ok(Vec::new()),
        NvmlState::NoLibrary if driver_folder::unsearched(host).is_some() => Ok(Vec::new()),
        _ => Ok(vec![missing(host, intent, container, has_device)]),
    }
}

fn lost(host: &Host, code: i64, device: Option<String>) -> Finding {
    let title = format!("this container lost its GPUs: {}", nvml_error_text(code));
    let finding = Finding::new("container.gpus-lost", title);
    let finding = device
        .map(|device| format!("{device} exists but cannot be used"))
        .into_iter()
        .fold(finding, Finding::seen);
    // These containers have no rules of systemd for devices.
    match host.place() {
        Place::Apptainer | Place::Enroot if host.rental().is_none() => return of_host(host, finding),
        Place::Lxc if host.rental().is_none() => return of_lxc(host, finding),
        _ => {}
    }
    let finding = restart_container(host, finding);
    let finding = match host.place() {
        // A service restarts its own machines.
        Place::Colab | Place::Kaggle => return finding,
        _ if host.rental().is_some() => return finding,
        // A new container that is not allowed to use the devices cannot be told from one that no longer is.
        Place::Docker | Place::DockerInWsl | Place::Podman => finding
            .because(format!(
                "when systemd on the host reloads its units (`systemctl daemon-reload`), running containers lose access to \
                 the GPUs; a new container has none from its first second if {RUNTIME_CONFIG} on the host says \
                 `no-cgroups = true`, which only Docker without root needs; nvidia-smi on the host still works"
            ))
            .remedy(
                "restart the container; if the GPUs do not work even then, set `no-cgroups = false` on the host, restart \
                 Docker there, and start the container again; so that running containers keep their GPUs, create the device \
                 links that systemd expects, or start the container with --device for each /dev/nvidia* file",
            )
            .command(format!("grep no-cgroups {RUNTIME_CONFIG}  # on the host")),
        _ => finding,
    };
    finding.command("sudo nvidia-ctk system create-dev-char-symlinks --create-all  # on the host")
}

/// The driver of the host fails: what it said in the container, it says there too.
fn of_host(host: &Host, finding: Finding) -> Finding {
    let finding = finding.because(
        "Apptainer and Enroot show a container the device files of the host, and systemd's rules for devices do not concern them: the \
             driver of the host does not answer",
    );
    if host.job().is_some() {
        return restart(host, finding);
    }
    finding
        .remedy(
            "see whether nvidia-smi works on the host: if it does not, repair the driver there, or have its administrator do it (`yolo \
             doctor` on the host says what is wrong); if it does, start the container with --nv and without options that hide \
             devices, such as --contain",
        )
        .command("nvidia-smi  # on the host")
}

/// LXC has its own rules for devices, which systemd on the host does not touch.
fn of_lxc(host: &Host, finding: Finding) -> Finding {
    let finding = finding
        .because(
            "the driver of the host fails, or the container's settings do not allow the device files: after a restart of the host \
             they can have other numbers",
        )
        .remedy(
            "see whether nvidia-smi works on the host: if it does not, repair the driver there (`yolo doctor` on the host says what is \
             wrong); then restart the container; if the GPUs do not work even then, give it the device files by their names (Proxmox: \
             `pct set <number> --dev0 /dev/nvidia0`; LXD and Incus: a device of the type gpu) in place of lines with their numbers",
        );
    restart_container(host, finding.command("nvidia-smi  # on the host"))
}

fn missing(host: &Host, intent: &Intent, container: Container, has_device: Option<bool>) -> Finding {
    let wsl = host.is_wsl2().unwrap_or(false);
    // Apptainer and Enroot show the host's device files to every container; an option adds the libraries.
    let switch = host.env("NVIDIA_VISIBLE_DEVICES").ok().flatten();
    let is_off = switch.as_deref().is_some_and(|value| matches!(value, "void" | "none"));
    let partly = !matches!(container, Container::Apptainer | Container::Enroot) && !is_off;
    if partly && (has_device == Some(true) || wsl && host.exists("/dev/dxg") == Ok(true)) {
        let title = "this container has a GPU, but not the driver's monitoring library (libnvidia-ml)";
        let finding = Finding::new("container.gpus-missing", title)
            .status(status(host, intent))
            .remedy("start the container with the driver's compute and utility capabilities");
        return start_with(host, finding, Start::Libraries);
    }
    // With CDI, every container has this value; the files are those that the device plugin chose.
    if is_off && container == Container::Kubernetes && has_device == Some(true) {
        let title = "this pod has the device files of a GPU, but not the driver's libraries";
        let finding = Finding::new("container.gpus-missing", title).status(status(host, intent));
        return libcuda::without_runtime_of_node(finding);
    }
    if let Some(finding) = without_card(host, container) {
        return finding.status(status(host, intent));
    }
    let title = format!("this {} container was started without GPUs", container.name());
    let finding = Finding::new("container.gpus-missing", title).status(status(host, intent));
    let finding = match container {
        Container::Apptainer => finding
            .remedy("start the container with access to the GPUs; if that fails, make sure that nvidia-smi works on the host"),
        _ => finding,
    };
    let finding = match container {
        Container::Lxc => finding.remedy(
            "give the container the device files of the host's GPUs, restart it, and install the libraries of the host's driver in it, \
             of the same version and without a kernel module (LXD and Incus bring them with `nvidia.runtime`); make sure that nvidia-smi \
             works on the host",
        ),
        Container::Podman | Container::Docker | Container::Apptainer | Container::Enroot | Container::Kubernetes => finding,
    };
    // The device plugin has chosen a card for this pod, and the runtime did not bring it.
    if let Some(seen) = given_by_plugin(host, switch.as_deref()) {
        return finding
            .seen(seen)
            .because("the pod was given a GPU, but its container was not started by NVIDIA's runtime, which mounts it")
            .remedy(
                "add `runtimeClassName: nvidia` to the pod, as k3s and RKE2 need it, or make nvidia the default runtime of \
                 containerd on the node (`nvidia-ctk runtime configure --runtime=containerd --set-as-default`; for k0s in \
                 /etc/k0s/containerd.d/nvidia.toml; for MicroK8s `microk8s enable nvidia`)",
            );
    }
    let finding = start_with(host, finding, Start::Gpus(intent.devices.len()));
    // On a rented machine, the service sets the variable.
    let switch = switch.filter(|_| host.rental().is_none());
    match switch.filter(|value| matches!(value.as_str(), "void" | "none")) {
        Some(value) => finding.seen(format!("NVIDIA_VISIBLE_DEVICES={value} switches the GPUs off")).remedy(
            "start the container with access to the GPUs, and remove NVIDIA_VISIBLE_DEVICES or set it to `all`",
        ),
        None => finding,
    }
}

/// How the device plugin of a cluster named the cards of this pod: by their names or numbers in a variable, or as
/// files. An image may set the variable to `all` by itself.
fn given_by_plugin(host: &Host, switch: Option<&str>) -> Option<String> {
    if host.place() != Place::Pod {
        return None;
    }
    let is_card = |value: &str| {
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        value.starts_with("GPU-") || value.starts_with("MIG-") || value.split(',').all(is_number)
    };
    match switch {
        Some(value) if is_card(value) => {
            Some(format!("NVIDIA_VISIBLE_DEVICES={value}: the device plugin gave the pod this GPU"))
        }
        _ if host.exists(OF_PLUGIN) == Ok(true) => {
            Some(format!("{OF_PLUGIN} exists: the device plugin gave the pod a GPU"))
        }
        _ => None,
    }
}

/// A container on a machine without a card, which no option changes. Docker Desktop, and programs like it, run
/// containers in a virtual machine of their own even on Linux.
fn without_card(host: &Host, container: Container) -> Option<Finding> {
    let kernel = host.kernel_release().unwrap_or_default();
    let is_desktop = kernel.contains("linuxkit");
    if container == Container::Kubernetes || !(is_desktop || pci::has_no_card(host)) {
        return None;
    }
    if is_desktop {
        let title = "this container runs in the virtual machine of Docker Desktop, which has no GPU";
        return Some(
            Finding::new("container.gpus-missing", title)
                .because("outside WSL, Docker Desktop runs containers in a virtual machine without the PC's card")
                .seen(format!("kernel {kernel}"))
                .remedy(
                    "on Linux, start containers with Docker Engine and NVIDIA's Container Toolkit instead; on Windows, \
                     turn on `Use the WSL 2 based engine` in the settings of Docker Desktop",
                )
                .command("docker context use default  # on the host")
                .command("docker run --gpus all --ipc=host …"),
        );
    }
    let title = format!("the machine that runs this {} container has no NVIDIA card", container.name());
    let finding = Finding::new("container.gpus-missing", title).seen("the PCI bus has no NVIDIA card");
    if matches!(host.place(), Place::Colab | Place::Kaggle) {
        let finding = Finding::new("container.gpus-missing", "the machine of this notebook has no GPU")
            .because("the service gives a notebook the machine that its user has chosen");
        return Some(start_with(host, finding, Start::Gpus(1)));
    }
    if host.rental().is_some() {
        return Some(start_with(host, finding, Start::Gpus(1)));
    }
    Some(
        finding
            .because("a container has the cards of the machine that runs it, or of the virtual machine there")
            .remedy("run the container on a machine with an NVIDIA card, or train on the CPU")
            .command("yolo train --device cpu …"),
    )
}

/// On a machine without GPUs, or for a run on the CPU, a container needs none.
fn status(host: &Host, intent: &Intent) -> Status {
    if intent.cpu {
        return Status::Info;
    }
    let set = |name: &str| {
        host.env(name).ok().flatten().is_some_and(|value| !matches!(value.as_str(), "" | "void" | "none"))
    };
    let image_for_cuda =
        ["NVIDIA_VISIBLE_DEVICES", "NVIDIA_REQUIRE_CUDA", "CUDA_VERSION"].into_iter().any(set);
    let for_cuda = || host.libtorch().ok().flatten().is_some_and(|libtorch| libtorch.variant != Variant::Cpu);
    // Inside WSL, a run's container should have the GPUs of Windows.
    let in_wsl = || host.is_wsl2() == Ok(true);
    // The host's PCI cards and kernel module are visible in every container.
    let has_card = || !pci::cards(host).is_empty();
    let has_driver = || matches!(host.driver_module_version(), Ok(Some(_)));
    if !intent.devices.is_empty() || image_for_cuda || for_cuda() || in_wsl() || has_card() || has_driver() {
        Status::Error
    } else {
        Status::Info
    }
}

//! The kernel module of a container's host. A container sees through /proc whether the module is loaded there, and
//! through /sys which driver has the card. Without the module neither an option of the container nor its restart
//! helps: the host comes first.

use super::pci::{cards, driver_of};
use crate::facts::{Host, NvmlState, Place};
use crate::finding::Finding;
use crate::remedies::restart::restart_container;

/// The finding that the host of this container has a card and has not loaded NVIDIA's module.
pub(in crate::checks) fn not_loaded(host: &Host, state: &NvmlState) -> Option<Finding> {
    let is_concerned = match (host.place(), state) {
        // Without libraries the container was started without GPUs, whatever its host has.
        (Place::Lxc, NvmlState::Failed(_)) => true,
        (Place::Docker | Place::Podman, NvmlState::Failed(9)) => host.rental().is_none(),
        _ => false,
    };
    let card = cards(host).into_iter().next().filter(|_| is_concerned)?;
    if host.driver_module_version() != Ok(None) {
        return None;
    }
    let driver = driver_of(host, &card);
    let finding = match driver.as_deref() {
        Some("vfio-pci") => {
            let title =
                format!("the host of this container reserves the NVIDIA card {card} for a virtual machine");
            let finding = Finding::new("gpu.switched-off", title).seen(format!("driver of {card}: vfio-pci"));
            return Some(restart_container(
                host,
                finding.remedy(
                    "train in the virtual machine that has the card; or, on the host, remove the card's ID from vfio-pci's options \
                     (/etc/modprobe.d and the kernel command line), restart the host, and start this container with the card",
                ),
            ));
        }
        Some(name @ ("nouveau" | "nova_core" | "NovaCore" | "nova-core")) => {
            let title = format!("on the host of this container, {name} controls the NVIDIA card");
            Finding::new("gpu.nouveau", title)
                .because(format!(
                    "a container has the kernel of its host, and {name} cannot run CUDA; NVIDIA's module was not built for the \
                     kernel that runs there, or is not installed"
                ))
                .seen(format!("driver of {card}: {name}"))
        }
        _ => {
            let title = "the host of this container has not loaded NVIDIA's kernel module";
            Finding::new("gpu.driver-not-loaded", title).because(
                "a container has the kernel of its host; after an update of that kernel, the module is missing until it has been \
                 built for the new one, which needs the kernel's headers",
            )
        }
    };
    let holder = driver.filter(|name| name != "nvidia");
    Some(load(host, finding.seen("/proc/driver/nvidia/version does not exist"), holder.is_some()))
}

/// The finding with what to do on the host. While another driver holds the card, the module is loaded by a restart.
fn load(host: &Host, finding: Finding, is_held: bool) -> Finding {
    let kernel = host.kernel_release().unwrap_or_default();
    let is_proxmox = kernel.ends_with("-pve");
    let then = if is_held {
        "restart the host with all that runs on it, which frees the card"
    } else {
        "load it and see that nvidia-smi works there, which also makes the device files"
    };
    let finding = finding.remedy(format!(
        "on the host: install the headers of its kernel and build the driver's module for it (with NVIDIA's installer: run it again, \
         with --dkms), {then}; then restart this container, in which no module belongs"
    ));
    let finding = finding.seen(format!("kernel {kernel}"));
    let headers = match is_proxmox {
        true => format!("apt install proxmox-headers-{kernel}"),
        false if kernel.ends_with("-generic") => format!("sudo apt install linux-headers-{kernel}"),
        false => String::new(),
    };
    let sudo = if is_proxmox { "" } else { "sudo " };
    let mut commands = vec![headers, format!("{sudo}dkms autoinstall")];
    commands.extend(match is_held {
        true => vec![format!("{sudo}reboot")],
        false => vec![
            format!("{sudo}modprobe nvidia"),
            format!("{sudo}nvidia-modprobe -u -c 0"),
            "nvidia-smi".to_owned(),
        ],
    });
    commands.retain(|command| !command.is_empty());
    let finding = commands
        .into_iter()
        .fold(finding, |finding, command| finding.command(format!("{command}  # on the host")));
    restart_container(host, finding)
}

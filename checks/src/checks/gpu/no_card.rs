//! A run that uses a GPU on a machine that has no NVIDIA card, where no driver would help. In a virtual machine
//! the PC around it may have one.

use super::pci;
use crate::facts::{Guest, Host};
use crate::finding::Finding;

/// The finding, if the PCI bus is known to have no NVIDIA card.
pub(super) fn find(host: &Host) -> Option<Finding> {
    match host.guest().filter(|_| pci::has_no_card(host)) {
        Some(guest) => Some(in_guest(guest)),
        None => pci::other_vendors(host).map(|makers| on_machine(&makers)),
    }
}

/// A run that uses a GPU on a machine without an NVIDIA card: no driver would help.
fn on_machine(makers: &[&str]) -> Finding {
    let has = match makers {
        [] => String::new(),
        _ => format!(" (it has {} graphics)", makers.join(" and ")),
    };
    let title = format!("the run uses a GPU, but this machine has no NVIDIA card{has}");
    Finding::new("gpu.driver-missing", title)
        .because("training on a GPU needs CUDA, which only runs on NVIDIA cards")
        .remedy("train on the CPU")
        .command("yolo train --device cpu …")
}

/// A virtual machine that was given no card. In some kinds, it cannot be given one.
fn in_guest(guest: Guest) -> Finding {
    let title = format!("the run uses a GPU, but this virtual machine ({}) has no NVIDIA card", guest.name());
    let finding = Finding::new("gpu.driver-missing", title);
    let finding = match guest {
        Guest::Desktop("Parallels") => finding
            .because("Parallels runs on Macs, which have no NVIDIA card, and gives its guests a virtual one without CUDA")
            .remedy("train on another machine, which has an NVIDIA card, or on the CPU"),
        Guest::Desktop(name) => finding
            .because(format!("{name} gives its guests a virtual card without CUDA, whatever is installed in the guest"))
            .remedy(
                "train on the host itself: on Windows in WSL 2 (`yolo setup --wsl` in PowerShell), or with Linux \
                 installed directly; or train on the CPU",
            ),
        Guest::VmWare => finding
            .because("VMware gives its guests a virtual card without CUDA, unless a server passes a whole one through")
            .remedy(
                "on a PC train on the host itself: on Windows in WSL 2 (`yolo setup --wsl` in PowerShell), or with Linux \
                 installed directly; on a server (ESXi) pass the card through to this machine; or train on the CPU",
            ),
        Guest::HyperV => finding
            .because("Hyper-V gives its guests a virtual card without CUDA, unless it assigns them a whole one")
            .remedy(
                "on a Windows PC train in WSL 2 (`yolo setup --wsl` in PowerShell); on Windows Server assign the card \
                 to this machine (Discrete Device Assignment); or train on the CPU",
            ),
        Guest::Qemu => finding
            .because("QEMU gives its guests a virtual card without CUDA, unless the host passes a whole one through")
            .remedy(
                "pass the card through to this virtual machine on its host (Proxmox: Hardware, Add, PCI Device; \
                 virt-manager: Add Hardware, PCI Host Device), or train on the host; or train on the CPU",
            ),
        Guest::Cloud(_) => finding
            .because("this type of machine has no GPU")
            .remedy("change the machine to a type with an NVIDIA GPU, or rent another one; or train on the CPU"),
    };
    finding.command("yolo train --device cpu …")
}

//! How a card gets the range of addresses for its memory: on a machine by the settings of its firmware, in a virtual one
//! by those of the program that runs it.

use super::generation::numbers;
use super::power_cycle::STOP_AND_START;
use crate::facts::{Guest, Host};

/// The settings of a machine's firmware.
const OF_FIRMWARE: &str = "in the firmware settings, enable \"Above 4G Decoding\" (and \"Resizable BAR\", if present) and disable CSM";
/// So many cards fill the range of many boards.
const MANY: usize = 4;

/// What to do, as a phrase. The ranges of all cards have to fit in the window of a virtual machine.
pub(crate) fn words(host: &Host) -> String {
    let has_uefi = host.exists("/sys/firmware/efi") == Ok(true);
    let uefi = |how: &str| match has_uefi {
        true => String::new(),
        false => format!("UEFI ({how}; a guest that was installed with BIOS has to be installed again), "),
    };
    match host.guest() {
        None if host.is_virtual_machine() => {
            "enlarge the 64-bit PCI window of this virtual machine on its host, so that the memory of all its cards fits".to_owned()
        }
        // Ports for external devices reserve large ranges.
        None if numbers(host).len() >= MANY => format!(
            "{OF_FIRMWARE}; if that does not help or is not available, turn off controllers of USB4 and Thunderbolt there that are not \
             used, which take large ranges, update the firmware (BIOS), and boot Linux with `pci=realloc`"
        ),
        None => format!(
            "{OF_FIRMWARE}; if that does not help or is not available, update the firmware (BIOS), and boot Linux with `pci=realloc`; an \
             external GPU has to be connected before the machine starts"
        ),
        Some(Guest::Qemu) => format!(
            "enlarge the 64-bit PCI window of this virtual machine on its host, then shut it down and start it: choose {}the \
             machine type q35 and the host's CPU (`-cpu host`; in Proxmox `qm set VMID --cpu host`), or name the size in MB with \
             `-fw_cfg name=opt/ovmf/X-PciMmio64Mb,string=262144`, twice the memory of all its cards or more (in `args:` of Proxmox, \
             `raw.qemu` of LXD and Incus, `<qemu:arg>` of libvirt)",
            uefi("OVMF")
        ),
        Some(Guest::VmWare) => format!(
            "shut this virtual machine down, enlarge its 64-bit PCI window on its host, and start it: set {}\
             `pciPassthru.use64bitMMIO = \"TRUE\"` and `pciPassthru.64bitMMIOSizeGB = \"256\"` in its settings (.vmx), a power \
             of two that is \
             at least twice the memory of all its cards",
            uefi("`firmware = \"efi\"`")
        ),
        Some(Guest::HyperV) => "enlarge the 64-bit PCI window of this virtual machine on its host, while it is off, in PowerShell: \
             `Set-VM -Name NAME -GuestControlledCacheTypes $true -LowMemoryMappedIoSpace 3GB -HighMemoryMappedIoSpace 66GB`, with more \
             than the memory of all its cards"
            .to_owned(),
        Some(Guest::Cloud(name)) => format!(
            "{STOP_AND_START}; if the card still gets no range, start another \
             instance from the provider's own image for GPUs, and tell {name}"
        ),
        Some(Guest::Desktop(name)) => format!("use another program than {name} for the virtual machine: it cannot pass a card on"),
    }
}

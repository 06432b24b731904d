//! WSL 2 on a Windows that is itself a virtual machine: virtualization is a setting of its host, and not of a firmware that
//! the user could open.

use crate::facts::Guest;
use crate::finding::Finding;

/// The finding about virtualization, with the remedy for this kind of virtual machine.
pub(super) fn fit(finding: Finding, guest: Guest) -> Finding {
    const LINUX: &str = "WSL in such a machine seldom has the GPU: better train on a Linux machine, or on a PC whose Windows \
                         is no virtual machine";
    let (how, command) = match guest {
        Guest::HyperV => (
            "shut this virtual machine down, and let it use virtualization, in PowerShell as administrator on its host",
            Some("Set-VMProcessor -VMName <name> -ExposeVirtualizationExtensions $true  # on the host"),
        ),
        Guest::Cloud("Azure") => (
            "choose a size with nested virtualization, and the security type Standard instead of Trusted Launch",
            None,
        ),
        Guest::Cloud("Amazon EC2") => (
            "choose an instance type with nested virtualization, such as one whose name ends with .metal",
            None,
        ),
        Guest::Cloud(_) => ("choose a machine with nested virtualization, if the provider has one", None),
        Guest::VmWare => (
            "shut this virtual machine down, and turn `Virtualize Intel VT-x/EPT or AMD-V/RVI` on in its processor settings",
            None,
        ),
        Guest::Desktop("VirtualBox") => (
            "shut this virtual machine down, and turn nested virtualization on",
            Some("VBoxManage modifyvm <name> --nested-hw-virt on  # on the host"),
        ),
        Guest::Desktop(_) => {
            ("shut this virtual machine down, and turn nested virtualization on in its settings", None)
        }
        Guest::Qemu => (
            "shut this virtual machine down, and give it the host's own processor type, with nested virtualization: \
             `-cpu host`, in Proxmox the type `host`",
            Some("qm set <number> --cpu host  # on a Proxmox host"),
        ),
    };
    let mut finding = finding
        .seen(format!("this Windows is a virtual machine ({})", guest.name()))
        .because(format!(
            "WSL 2 is a virtual machine, and this Windows is one itself ({}), whose host may not let it start others; or Windows' \
             Virtual Machine Platform is off",
            guest.name()
        ))
        .remedy(format!(
            "run `wsl.exe --install --no-distribution` and restart Windows; if WSL says the same again, {how}, and start it \
             again. {LINUX}"
        ));
    // The firmware and the boot loader of this Windows cannot change it.
    if let Some(remedy) = &mut finding.remedy {
        remedy.commands.clear();
    }
    let finding = finding.command("wsl.exe --install --no-distribution");
    command.into_iter().fold(finding, Finding::command)
}

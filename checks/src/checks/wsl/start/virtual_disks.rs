//! Windows cannot make or attach any virtual disk, whichever file it is. `wsl --status` and `wsl -l -v` look healthy.

use crate::checks::wsl::services;
use crate::facts::Host;
use crate::finding::Finding;

/// The number of Windows for virtual disks without the driver that opens them (ERROR_VIRTDISK_PROVIDER_NOT_FOUND).
pub(super) const NO_PROVIDER: &str = "0xc03a0014";
/// The driver of virtual disks, and the service that gives them to virtual machines.
const NEEDED: [&str; 2] = ["vhdmp", "vmcompute"];

/// Microsoft/WSL#10101, #40734 (the feature, the service), #10464, #13504 (attaching).
pub(super) fn finding(host: &Host) -> Finding {
    let disabled: Vec<&str> = NEEDED.into_iter().filter(|name| services::is_disabled(host, name)).collect();
    if !disabled.is_empty() {
        let names = disabled.join(" and ");
        let title = format!("WSL cannot use virtual disks: Windows' {names} is disabled");
        let finding = Finding::new("wsl.service-disabled", title)
            .because(
                "without it Windows opens no virtual disk; programs that promise a faster Windows disable it",
            )
            .remedy(
                "let it start again, in a Windows terminal as administrator, and repeat the command of WSL",
            );
        let commands = disabled
            .iter()
            .flat_map(|name| [format!("sc.exe config {name} start= demand"), format!("sc.exe start {name}")]);
        return commands.fold(finding, Finding::command);
    }
    Finding::new("wsl.feature-off", "WSL cannot use virtual disks: Windows' own part for them does not run")
        .because(
            "Windows' Virtual Machine Platform is off or only partly turned on, or its driver (vhdmp) or service (vmcompute) of \
             virtual machines does not run; no file or distribution is at fault",
        )
        .remedy(
            "in a Windows terminal as administrator, start the driver and the service, and repeat the command of WSL; if that does not \
             help, turn the Virtual Machine Platform on and restart Windows; if it is on already, turn it off (`dism.exe /online \
             /disable-feature /featurename:VirtualMachinePlatform`) and on, with a restart after each; if WSL still says the \
             same, install the updates of Windows, and let encryption or backup programs that filter disks (`fltmc.exe` lists them) \
             exempt .vhdx files, or remove them",
        )
        .command("sc.exe start vhdmp")
        .command("sc.exe start vmcompute")
        .command("dism.exe /online /enable-feature /featurename:VirtualMachinePlatform /all /norestart")
        .command("shutdown /r /t 0")
}

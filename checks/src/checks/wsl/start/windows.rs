//! What is wrong with Windows itself, or with programs in it, so that no virtual machine of WSL starts.

use super::setup::msi;
use crate::checks::wsl::{SHUTDOWN, edit};
use crate::facts::Host;
use crate::finding::Finding;
use crate::wsl::preview::is_preview;

/// Windows does not accept the signature of a file with which virtual machines start. That of a preview expires.
pub(super) fn unsigned(host: &Host, code: &str) -> Finding {
    const PREVIEW: &str = "install a newer build with Windows Update (Settings, Windows Update, Windows Insider Program: choose a \
                           channel that offers one); if none is offered, install the released Windows 11 over it with Microsoft's \
                           ISO (setup.exe, keep files and apps); nothing has to be changed in WSL, whose distributions are kept";
    let build = host.windows_build().ok();
    if let Some(build) = build.filter(|&build| is_preview(build)) {
        let title = format!("WSL cannot start: this preview of Windows (build {build}) has expired");
        return Finding::new("wsl.windows-old", title)
            .because(
                "the signature of Hyper-V in a preview of Windows ends after some months, and Windows then no longer starts any \
                 virtual machine, not even Windows Sandbox",
            )
            .remedy(PREVIEW)
            .command("start ms-settings:windowsupdate");
    }
    if !code.to_ascii_lowercase().contains("createvm") && !code.eq_ignore_ascii_case("0x80090006") {
        return launcher(code);
    }
    let title = "WSL cannot start: Windows does not accept the signature of its own Hyper-V";
    Finding::new("wsl.damaged", title)
        .because(
            "a file of Windows with which virtual machines start is damaged, the clock of this PC is wrong, or this is an Insider \
             preview of Windows whose signature has expired",
        )
        .remedy(format!(
            "correct the date of Windows; repair its files in a Windows terminal as administrator, and restart Windows; on a preview \
             (`winver` shows when it expires) {PREVIEW}"
        ))
        .command("dism.exe /online /cleanup-image /restorehealth")
        .command("sfc.exe /scannow")
        .command("shutdown /r /t 0")
}

/// `The parameter is incorrect`, without a mistake of the user.
pub(super) fn refused(host: &Host, code: &str) -> Finding {
    let title = format!("WSL does not start: Windows refuses to create its virtual machine ({code})");
    let expired = match host.windows_build() {
        Ok(build) if is_preview(build) => {
            "an Insider preview of Windows has expired or is too old for this WSL, "
        }
        _ => "Windows is too old for this WSL, ",
    };
    Finding::new("wsl.damaged", title)
        .because(format!(
            "{expired}or encryption or data-loss-prevention software, as used in companies, keeps virtual machines from starting"
        ))
        .remedy(
            "install all updates of Windows, update WSL and restart Windows; if WSL says the same again, end such a program or let it \
             exempt C:\\Program Files\\WSL and vmwp.exe; then turn the Virtual Machine Platform off and on in a Windows terminal as \
             administrator, with a restart after each",
        )
        .command("start ms-settings:windowsupdate")
        .command("wsl.exe --update")
        .command("dism.exe /online /disable-feature /featurename:VirtualMachinePlatform")
            .command("shutdown /r /t 0")
            .command("dism.exe /online /enable-feature /featurename:VirtualMachinePlatform /all")
            .command("shutdown /r /t 0")
}

/// Windows started WSL's service, or asked it, and got no answer.
pub(super) fn service_silent(code: &str) -> Finding {
    Finding::new("wsl.damaged", format!("WSL does not start: its service does not start or answer ({code})"))
        .because("the WSL that is part of Windows is out of date or damaged, or an update of WSL was not completed")
        .remedy(
            "update WSL in a Windows terminal as administrator, and restart Windows; if WSL says the same again, run the installer \
             (.msi) from https://github.com/microsoft/WSL/releases as administrator, which repairs WSL and keeps distributions",
        )
        .command("wsl.exe --update")
        .command("shutdown /r /t 0")
}

/// WSL's service ended while it was asked (microsoft/WSL#11520, #12262, #12533).
pub(super) fn service_crashes(host: &Host, code: &str) -> Finding {
    Finding::new("wsl.damaged", format!("WSL does not start: its service crashes ({code})"))
        .because(
            "this release of WSL has a fault on this PC, an update of WSL was not completed, or a plug-in of WSL (Defender for Endpoint, \
             Intune) ends the service",
        )
        .remedy(format!(
            "update WSL in a Windows terminal as administrator, and restart Windows; if WSL says the same again, repair it with the \
             installer ({}) of https://github.com/microsoft/WSL/releases as administrator; if it began with an update of WSL, install the \
             release before that, or the pre-release (`wsl.exe --update --pre-release`); if a plug-in is listed by the first command, let \
             the administrator update or remove it; distributions are kept",
            msi(host)
        ))
        .command(format!("reg.exe query {PLUGINS}"))
        .command("wsl.exe --update")
        .command("shutdown /r /t 0")
}

/// Where plug-ins are registered, each with the path of its file.
const PLUGINS: &str = r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Lxss\Plugins";

/// A plug-in that the company has installed, without which WSL does not start: `A fatal error was returned by plugin 'NAME'`.
pub(super) fn plugin(text: &str, code: &str) -> Finding {
    let mut words = text.split(['\'', '"', '«', '»', '“', '”', '„', '「', '」', '‘', '’']);
    let name =
        words.nth(1).map(str::trim).filter(|name| (1..80).contains(&name.len()) && !name.contains('\n'));
    let which = name.map_or_else(|| "a plug-in of this PC".to_owned(), |name| format!("the plug-in {name}"));
    let finding = Finding::new("wsl.damaged", format!("WSL does not start: {which} fails"));
    if code.to_ascii_lowercase().ends_with("wsl_e_plugin_requires_update") {
        return finding
            .because("the plug-in needs a newer WSL")
            .remedy("update WSL in a Windows terminal as administrator")
            .command("wsl.exe --update");
    }
    finding
        .because(
            "security and management programs of companies (Microsoft Defender for Endpoint, Intune) add plug-ins to WSL, and WSL does \
             not start if one fails; WSL itself and the distributions are not at fault",
        )
        .remedy(
            "repair the plug-in (Settings, Apps, Installed apps, `Microsoft Defender for Endpoint plug-in for WSL` or the like, Modify, \
             Repair) and restart Windows; if that does not help, let the administrator of this PC update or remove it; the command lists \
             the plug-ins with their files",
        )
        .command(format!("reg.exe query {PLUGINS}"))
}

/// A Winsock provider (LSP) of a proxy, VPN or encryption program is loaded into WSL, and its sockets are no longer those
/// of Windows (microsoft/WSL#4177, #9331, #9413).
pub(super) fn winsock() -> Finding {
    Finding::new("wsl.damaged", "WSL does not start: a network program of Windows puts itself between WSL and Windows")
        .because(
            "a Winsock provider (LSP) is loaded into wsl.exe, as Proxifier 3, Symantec Encryption Desktop (PGP), and some VPNs, proxies \
             and accelerators for games install one; `netsh.exe winsock show catalog` lists it as a layered service provider",
        )
        .remedy(
            "reset the catalog of Winsock in a Windows terminal as administrator, and restart Windows; the other program may have to be \
             set up again: update it first (Proxifier 4 has no such provider), or let it exempt C:\\Windows\\System32\\wsl.exe and \
             C:\\Program Files\\WSL\\wsl.exe, or remove it",
        )
        .command("netsh.exe winsock reset")
        .command("shutdown /r /t 0")
}

/// Windows 10 has no nested virtualization for WSL at all.
pub(super) fn nested(host: &Host) -> Finding {
    let title =
        "WSL cannot start: .wslconfig asks for nested virtualization, which this Windows does not have";
    let finding = Finding::new("wsl.damaged", title)
        .because("nested virtualization in WSL needs Windows 11; newer releases of WSL only warn. Training does not need it")
        .remedy("write `nestedVirtualization=false` under [wsl2] in .wslconfig, update WSL, and shut it down");
    let finding = match host.wslconfig() {
        Ok(config) => finding.command(edit(host, &config)),
        Err(_) => finding,
    };
    finding.command("wsl.exe --update").command(SHUTDOWN)
}

/// The number of a launcher, such as ubuntu.exe, that nothing else explains.
pub(super) fn launcher(code: &str) -> Finding {
    Finding::new("wsl.damaged", format!("WSL does not start a distribution: Windows reports {code}"))
        .because(
            "a service or feature of Windows that WSL needs does not work, most often because the WSL that is part of Windows is out of \
             date; Windows says no more than this number",
        )
        .remedy(
            "update WSL in a Windows terminal as administrator, restart Windows, and start the distribution again; if it reports the \
             same, turn the Virtual Machine Platform on and restart once more; then run the installer (.msi) from \
             https://github.com/microsoft/WSL/releases as administrator, which repairs WSL and keeps distributions",
        )
        .command("wsl.exe --update")
        .command("dism.exe /online /enable-feature /featurename:VirtualMachinePlatform /all")
        .command("shutdown /r /t 0")
}

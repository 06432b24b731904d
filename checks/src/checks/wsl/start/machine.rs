//! The virtual machine of WSL: what keeps Windows from starting it, or ends it.

use super::disk::{self, Disk};
use super::windows;
use crate::checks::wsl::{SHUTDOWN, edit};
use crate::facts::Host;
use crate::finding::Finding;
use crate::wsl::exe_output::Version;
use crate::wsl::start_failure::{Failure, Fault};

/// As far as the catalogue has the words.
pub(super) fn finding(host: &Host, failure: &Failure<'_>) -> Finding {
    match failure.fault {
        Fault::Gpu => Finding::new(
            "wsl.gpu-not-configured",
            "WSL cannot start: Windows cannot give its virtual machine the GPU",
        )
        .command("shutdown /r /t 0"),
        Fault::Crashed => Finding::new("wsl.vm-crashed", "the virtual machine of WSL crashed")
            .command("wsl.exe --update")
            .command(SHUTDOWN),
        Fault::Memory => {
            let finding = Finding::new(
                "wsl.no-memory-to-start",
                "WSL cannot start: Windows does not have enough memory for its virtual machine",
            );
            let limit = host.wslconfig().ok().and_then(|config| Some(config.value("memory")?.to_owned()));
            let finding = match limit {
                Some(limit) => finding.seen(format!(".wslconfig: memory={limit}")),
                None => finding,
            };
            let code = failure.code.to_ascii_lowercase();
            if code.contains("0x800705aa") || code.contains("no_system_resources") {
                return fragmented(host, finding);
            }
            finding.command(SHUTDOWN)
        }
        Fault::CustomKernel => {
            let kernel = host.wslconfig().ok().and_then(|config| Some(config.value("kernel")?.to_owned()));
            custom_kernel(host, "kernel", kernel.as_deref())
        }
        Fault::Logon => Finding::new(
            "wsl.damaged",
            "WSL cannot start: virtual machines may not log on to this PC as a service",
        )
        .because(
            "a group policy took the right `Log on as a service` from the group `NT VIRTUAL MACHINE\\Virtual Machines` \
             (S-1-5-83-0), in whose name every virtual machine runs",
        )
        .remedy(
            "fetch the policies again and restart the service of virtual machines, in a Windows terminal as administrator; if \
             the error comes back, the administrator of the domain must add `NT VIRTUAL MACHINE\\Virtual Machines` to `Log on as \
             a service`",
        )
        .command("gpupdate.exe /force")
        .command("sc.exe stop vmcompute")
        .command("sc.exe start vmcompute"),
        Fault::Stuck => Finding::new("wsl.no-answer", "WSL does not start: its service is stuck or lost its virtual machine")
            .command(SHUTDOWN),
        Fault::Unsigned => windows::unsigned(host, failure.code),
        Fault::Refused => windows::refused(host, failure.code),
        Fault::ServiceSilent => windows::service_silent(failure.code),
        Fault::ServiceCrashes => windows::service_crashes(host, failure.code),
        Fault::Winsock => windows::winsock(),
        Fault::Nested => windows::nested(host),
        Fault::Launcher => windows::launcher(failure.code),
        _ => other(failure.code),
    }
}

/// An error while a distribution was started that nothing else explains.
fn other(code: &str) -> Finding {
    let title = format!("WSL does not start: wsl.exe reports {code}");
    let finding = Finding::new("wsl.damaged", title);
    if code.to_ascii_lowercase().contains("createvm") {
        return finding
            .because("Windows cannot start the virtual machine of WSL: Windows' part of it (Hyper-V) is in a faulty state")
            .remedy(
                "restart Windows and update WSL; if WSL says the same again, turn the Virtual Machine Platform off and on in a \
                 Windows terminal as administrator, with a restart after each; then run the installer (.msi) from \
                 https://github.com/microsoft/WSL/releases, which repairs WSL and keeps distributions",
            )
            .command("wsl.exe --update")
            .command("dism.exe /online /disable-feature /featurename:VirtualMachinePlatform")
            .command("shutdown /r /t 0")
            .command("dism.exe /online /enable-feature /featurename:VirtualMachinePlatform /all")
            .command("shutdown /r /t 0");
    }
    finding
        .because("WSL itself runs, and this distribution does not")
        .remedy(
            "shut WSL down and start it again; then update WSL and restart Windows; if WSL says the same again, run the \
             installer (.msi) from https://github.com/microsoft/WSL/releases, which repairs WSL and keeps distributions",
        )
        .command(SHUTDOWN)
        .command("wsl.exe --update")
}

/// A file of `.wslconfig` that does not exist.
pub(super) fn custom_kernel(host: &Host, key: &str, value: Option<&str>) -> Finding {
    let title = match value {
        Some(value) => {
            format!("WSL cannot start: `{key}={value}` in .wslconfig names a file that does not exist")
        }
        None => "WSL cannot start: the kernel that .wslconfig names does not exist".to_owned(),
    };
    let finding = Finding::new("wsl.custom-kernel-missing", title);
    let config = host.wslconfig().ok();
    match &config {
        Some(config) => finding.command(edit(host, config)),
        None => finding,
    }
    .command(SHUTDOWN)
}

/// `Insufficient system resources`: each processor of the virtual machine needs pages that lie side by side
/// (microsoft/WSL#5231).
fn fragmented(host: &Host, finding: Finding) -> Finding {
    let finding = finding
        .because(
            "a virtual machine needs memory that lies in one piece for each of its processors, and Windows has no such piece \
             left: after days of work its memory is in small pieces, also if much is free",
        )
        .remedy(
            "close programs and restart Windows (Restart, because Shut down keeps the state); if the error comes back, write \
             `processors=4`, or half of the PC's, under [wsl2] in .wslconfig, lower `memory=`, and let Windows manage the \
             page file (SystemPropertiesPerformance.exe, Advanced, Virtual memory)",
        );
    let finding = match host.wslconfig() {
        Ok(config) => finding.command(edit(host, &config)),
        Err(_) => finding,
    };
    finding.command("shutdown /r /t 0")
}

/// Releases of WSL whose kernel does not start on some PCs: microsoft/WSL#40783, #40820, #41601.
const SLOW_FROM: [u32; 4] = [2, 7, 5, 0];
const SLOW_BEFORE: [u32; 4] = [2, 7, 15, 0];
const SLOW_KERNEL: [u32; 3] = [6, 18, 33];
/// The revision of Windows 11 22H2 and 23H2 with KB5043145, after which no virtual machine answered (microsoft/WSL#12090).
const FAULTY_REVISION: u32 = 4249;

/// The default is 30 s (microsoft/WSL#41165).
const SLOW_PC: &str = "on a slow or busy PC give it more time: write `kernelBootTimeout=90000` (milliseconds) under [wsl2] in .wslconfig";

/// The virtual machine was started and did not answer.
pub(super) fn timeout(host: &Host, code: &str, disk: &Disk) -> Finding {
    let title = "WSL does not start: its virtual machine does not answer in time";
    let finding = Finding::new("wsl.start-timeout", title);
    let code = code.to_ascii_lowercase();
    let versions = host.wsl_versions().ok().flatten().flatten();
    let is_slow = versions.is_some_and(|versions| {
        (SLOW_FROM..SLOW_BEFORE).contains(&versions.wsl.0)
            && versions.kernel.is_none_or(|kernel| kernel.0[..3] == SLOW_KERNEL)
    });
    if let Some(versions) = versions.filter(|_| is_slow && code.contains("createvm")) {
        return slow_kernel(finding, versions.wsl);
    }
    let is_faulty = versions
        .and_then(|versions| versions.windows)
        .is_some_and(|windows| matches!(windows.build(), 22621 | 22631) && windows.0[3] == FAULTY_REVISION);
    if is_faulty && code.contains("createvm") {
        return Finding::new(
            "wsl.start-timeout",
            "WSL does not start since Windows' update KB5043145: its virtual machine does not answer in time",
        )
        .because("with this update of Windows no virtual machine answers in time")
        .remedy(
            "install a newer update with Windows Update, or remove this one in a Windows terminal as administrator (`wusa.exe \
             /uninstall /kb:5043145`), and restart Windows",
        )
        .command("start ms-settings:windowsupdate")
        .command("shutdown /r /t 0");
    }
    let update = "if it began with an update of Windows, install the next one (Settings, Windows Update), or remove that one there \
                  (Update history, Uninstall updates)";
    let finding = finding
        .command(SHUTDOWN)
        .command("dism.exe /online /enable-feature /featurename:VirtualMachinePlatform /all")
        .command("shutdown /r /t 0")
        .command("wsl.exe --update");
    if code.contains("createvm") {
        return and(finding, &format!("{SLOW_PC}; {update}"));
    }
    // The machine runs, and one distribution in it does not: its file system is repaired again and again.
    let check = disk::finding(Fault::DiskDamaged, disk);
    let commands = check.remedy.map(|remedy| remedy.commands).unwrap_or_default();
    let finding = commands.into_iter().filter(|command| command != SHUTDOWN).fold(finding, Finding::command);
    finding.remedy(
        "shut WSL down and start it again, then restart Windows; turn the Virtual Machine Platform on in a Windows terminal as \
         administrator and update WSL; if other distributions start, copy ext4.vhdx of this one and check its file system with \
         e2fsck from another",
    )
}

/// The remedy with one more step at its end.
fn and(finding: Finding, step: &str) -> Finding {
    let text = finding.remedy.as_ref().map_or_else(String::new, |remedy| remedy.text.clone());
    finding.remedy(format!("{text}; {step}"))
}

/// A kernel that starts so slowly on some PCs that WSL gives up.
fn slow_kernel(finding: Finding, version: Version) -> Finding {
    finding
        .because(format!(
            "the kernel of WSL {version} (6.18.33) does not start in time on some PCs: old processors of AMD, Intel N100 and N150, \
             and a Windows that is itself a virtual machine"
        ))
        .remedy(
            "update WSL to a pre-release, which has a later kernel; if it says the same again, remove `Windows Subsystem for Linux` \
             in Windows' list of apps and install an older one, with the .msi of WSL 2.6.3 (kernel 6.6) of \
             https://github.com/microsoft/WSL/releases; distributions and their files are kept",
        )
        .command(SHUTDOWN)
        .command("wsl.exe --update --pre-release")
}

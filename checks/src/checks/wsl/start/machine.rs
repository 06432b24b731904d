//! The virtual machine of WSL: what keeps Windows from starting it, or ends it.

use super::disk::{self, Disk};
use crate::checks::wsl::{SHUTDOWN, edit};
use crate::facts::Host;
use crate::finding::Finding;
use crate::status::Status;
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
                "WSL cannot start: Windows has not enough memory for its virtual machine",
            );
            let limit = host.wslconfig().ok().and_then(|config| Some(config.value("memory")?.to_owned()));
            let finding = match limit {
                Some(limit) => finding.seen(format!(".wslconfig: memory={limit}")),
                None => finding,
            };
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
                 Windows terminal as administrator, with a restart after each; then run the installer (.msi) of \
                 https://github.com/microsoft/WSL/releases, which repairs WSL and keeps distributions",
            )
            .command("wsl.exe --update")
            .command("dism.exe /online /disable-feature /featurename:VirtualMachinePlatform")
            .command("dism.exe /online /enable-feature /featurename:VirtualMachinePlatform /all");
    }
    finding
        .because("WSL itself runs, and this distribution does not")
        .remedy(
            "shut WSL down and start it again; then update WSL and restart Windows; if WSL says the same again, run the \
             installer (.msi) of https://github.com/microsoft/WSL/releases, which repairs WSL and keeps distributions",
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

/// The virtual machine was started and did not answer.
pub(super) fn timeout(code: &str, disk: &Disk) -> Finding {
    let title = "WSL does not start: its virtual machine does not answer in time";
    let finding = Finding::new("wsl.start-timeout", title)
        .command(SHUTDOWN)
        .command("dism.exe /online /enable-feature /featurename:VirtualMachinePlatform /all")
        .command("wsl.exe --update");
    if code.to_ascii_lowercase().contains("createvm") {
        return finding;
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

/// The network of the virtual machine. WSL falls back to another mode, of which only `None` is no network.
pub(super) fn network(host: &Host, text: &str, code: &str) -> Finding {
    let lower = text.to_ascii_lowercase();
    let set = host.wslconfig().ok().and_then(|config| Some(config.value("networkingMode")?.to_owned()));
    // `(networkingMode Nat), falling back to networkingMode VirtioProxy`, in every language.
    let mut modes = lower.split("networkingmode ").skip(1).filter_map(|rest| {
        let end = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
        Some(&rest[..end]).filter(|mode| !mode.is_empty())
    });
    let (said, instead) = (modes.next(), modes.next());
    let mode = said.map(ToOwned::to_owned).or(set).unwrap_or_else(|| "nat".to_owned()).to_ascii_lowercase();
    let is_switch = lower.contains("wsl_e_vmswitch_not_found");
    let falls_back = instead.is_some()
        || lower.contains("falling back")
        || !is_switch && !code.to_ascii_lowercase().starts_with("wsl/");
    let (title, status) = match (instead, falls_back) {
        (Some(instead), _) if instead != "none" => (
            format!("WSL uses networkingMode={instead}, because Windows cannot set up networkingMode={mode}"),
            Status::Info,
        ),
        (_, true) => {
            (format!("WSL has no network: Windows cannot set up networkingMode={mode}"), Status::Warning)
        }
        (_, false) => (
            format!("WSL cannot start: Windows cannot set up its network (networkingMode={mode})"),
            Status::Error,
        ),
    };
    let finding = Finding::new("wsl.network-broken", title).status(status);
    if status == Status::Info {
        return finding.remedy(format!(
            "nothing, if the network works; to use networkingMode={mode}, restart Windows, and end VPN programs before WSL starts"
        ));
    }
    let file = |finding: Finding| match host.wslconfig() {
        Ok(config) => finding.command(edit(host, &config)),
        Err(_) => finding,
    };
    match mode.as_str() {
        "bridged" => {
            let finding = finding
                .because("bridged mode needs a virtual switch of Hyper-V, whose name `vmSwitch=` gives; there is none of that name")
                .remedy(
                    "remove `networkingMode=bridged` and `vmSwitch=` from .wslconfig, or write the name of an existing external \
                     switch there (Get-VMSwitch lists them in PowerShell as administrator); then shut WSL down",
                );
            file(finding).command(SHUTDOWN)
        }
        "mirrored" => {
            let finding = finding
                .because(
                    "mirrored mode copies Windows' network adapters; a VPN, a virtual adapter or a network service that hangs \
                     prevents that",
                )
                .remedy(
                    "restart Windows, and end VPN programs before starting WSL; if it fails again, write `networkingMode=nat` or \
                     `networkingMode=virtioproxy` under [wsl2] in .wslconfig, and shut WSL down",
                );
            file(finding).command(SHUTDOWN)
        }
        _ => finding.command("net.exe stop hns").command("net.exe start hns").command(SHUTDOWN),
    }
}

//! Installing and updating WSL: downloads, the installer, its service, and the account that has the distributions.

use crate::facts::Host;
use crate::finding::Finding;

/// Policies that keep Windows from its store, or from Microsoft's update servers: value, and when it does.
const POLICIES: [(&str, &str); 4] = [
    (r"HKLM\SOFTWARE\Policies\Microsoft\WindowsStore\RemoveWindowsStore", "1"),
    (r"HKLM\SOFTWARE\Policies\Microsoft\WindowsStore\DisableStoreApps", "1"),
    (r"HKLM\SOFTWARE\Policies\Microsoft\Windows\WindowsUpdate\DisableWindowsUpdateAccess", "1"),
    (
        r"HKLM\SOFTWARE\Policies\Microsoft\Windows\WindowsUpdate\DoNotConnectToWindowsUpdateInternetLocations",
        "1",
    ),
];

/// The policy that blocks downloads, if one is set.
pub(super) fn policy(host: &Host) -> Option<&'static str> {
    let is_set =
        |value: &str, on: &str| host.registry(value).ok().flatten().is_some_and(|set| set.trim() == on);
    POLICIES.into_iter().find(|(value, on)| is_set(value, on)).map(|(value, _)| value)
}

/// The name of the installer of the installed version.
pub(super) fn msi(host: &Host) -> String {
    let arch = if host.arch().is_ok_and(|arch| arch == "aarch64") { "arm64" } else { "x64" };
    match host.wsl_versions() {
        Ok(Some(Some(versions))) => {
            let [a, b, c, d] = versions.wsl.0;
            format!("wsl.{a}.{b}.{c}.{d}.{arch}.msi")
        }
        _ => format!("wsl.<version>.{arch}.msi"),
    }
}

/// A download of `wsl --install` or `wsl --update` failed.
pub(super) fn download(host: &Host, text: &str, is_list: bool) -> Finding {
    let title = if is_list {
        "the list of distributions that can be installed cannot be downloaded"
    } else {
        "WSL cannot be installed or updated: a download of Windows failed"
    };
    let finding = Finding::new("wsl.download-blocked", title);
    let finding = match policy(host) {
        Some(value) => finding.seen(format!("a policy is set: {value}")),
        None => finding,
    };
    let lower = text.to_ascii_lowercase();
    if !is_list
        && ["http_e_status_not_found", "0x80190194", "(404)"].iter().any(|error| lower.contains(error))
    {
        return not_there(finding);
    }
    let is_name = lower.contains("0x80072ee7") || lower.contains("name_not_resolved");
    let finding = if is_name && policy(host).is_none() {
        finding
            .because("Windows cannot resolve the name of a server: its DNS, a VPN or a provider does not answer for it")
            .remedy(
                "connect this PC to the internet, end the VPN, or set another DNS server (such as 1.1.1.1) in Windows' network \
                 settings; if only the store is blocked, download from the web instead; if raw.githubusercontent.com is blocked \
                 too, download the .msi from https://github.com/microsoft/WSL/releases and Ubuntu's .wsl file of \
                 https://releases.ubuntu.com/24.04 on another machine, and install them with `wsl --install --from-file FILE`",
            )
    } else {
        finding
    };
    finding.command("wsl.exe --update --web-download").command("wsl.exe --install --web-download -d Ubuntu")
}

/// The server answers that it has no such file (404): nothing blocks the download (microsoft/WSL#13358).
fn not_there(finding: Finding) -> Finding {
    finding
        .because("the server no longer has the file that Microsoft's list of distributions names: a newer point release has replaced it")
        .remedy(
            "update WSL and install again; if it says the same, install another release, or download Ubuntu's .wsl file of \
             https://releases.ubuntu.com/24.04 and install it with `wsl.exe --install --from-file FILE`",
        )
        .command("wsl.exe --update")
        .command("wsl.exe --install -d Ubuntu-22.04")
}

/// The installer (.msi) inside `wsl --update` fails.
pub(super) fn installer(host: &Host, text: &str) -> Finding {
    if let Some(finding) = without_installer(host) {
        return finding;
    }
    if has_lost_package(host, text) {
        return package_lost(host);
    }
    Finding::new("wsl.damaged", "WSL cannot be installed or updated: its installer fails")
        .because(
            "an earlier installation of WSL was not completed, or Windows Installer lost the file from which it was installed",
        )
        .remedy(format!(
            "update from a Windows terminal as administrator; if that fails again, run the installer (.msi) from \
             https://github.com/microsoft/WSL/releases ({}) as administrator; if that says error 1612 or 1603, first remove \
             `Windows Subsystem for Linux` with Microsoft's Program Install and Uninstall troubleshooter; if it says error 1714, \
             also with `Get-AppxPackage *WindowsSubsystemForLinux* -AllUsers | Remove-AppxPackage -AllUsers` in PowerShell as \
             administrator; distributions are kept",
            msi(host).replace(&version(host), "<version>")
        ))
        .command("wsl.exe --update")
}

/// The new version cannot remove the old one, whose .msi Windows Installer has lost. The sentence is English in every language;
/// 1612 (no source) and 2203, 2219 (a broken package) are in the log of the installer.
fn has_lost_package(host: &Host, text: &str) -> bool {
    const LOGGED: [&str; 4] = ["Error 1612", "Error 2219", "Note: 1: 2203", "Source is invalid"];
    let is_said = |text: &str| text.contains("cannot be removed");
    let is_logged = |text: &String| is_said(text) || LOGGED.iter().any(|words| text.contains(words));
    is_said(text) || host.recorded_texts("wsl-install-logs").iter().any(is_logged)
}

/// Microsoft/WSL#40955: the maintainers let the installed version be repaired first, which gives the file back.
fn package_lost(host: &Host) -> Finding {
    let file = msi(host);
    let title = "WSL cannot be updated: Windows Installer has lost the package of the installed version";
    Finding::new("wsl.damaged", title)
        .because(
            "the installer must remove the old version before it installs the new one, and needs the .msi of the old one for that, which \
             a cleaner or a moved app has taken away; the .msi of the new version fails in the same way",
        )
        .remedy(format!(
            "download {file}, the installer of exactly the version that is installed (`wsl.exe --version`), from \
             https://github.com/microsoft/WSL/releases, and give it back to Windows with the first command in a Windows terminal as \
             administrator; then update; if that fails too, remove `Windows Subsystem for Linux` with Microsoft's Program Install and \
             Uninstall troubleshooter, and install the .msi of the new version; distributions are kept, if you do not unregister them"
        ))
        .command(format!(r"msiexec.exe /fv <folder of the download>\{file}"))
        .command("wsl.exe --update")
}

/// Windows Installer keeps what it installed in this hidden folder, and installs nothing without it.
const INSTALLER: &str = r"C:\Windows\Installer";

fn without_installer(host: &Host) -> Option<Finding> {
    if host.stat(INSTALLER) != Ok(None) {
        return None;
    }
    let title =
        format!("WSL cannot be installed: {INSTALLER}, which Windows Installer needs, does not exist");
    Some(
        Finding::new("wsl.damaged", title)
            .because("somebody removed or renamed the folder, often to make room; no .msi can be installed or repaired without it")
            .remedy(format!(
                "give the folder its name back if it was renamed (such as Installer_old), otherwise make an empty one, in a Windows \
                 terminal as administrator; then run the installer ({}) of https://github.com/microsoft/WSL/releases as administrator",
                msi(host)
            ))
            .command(format!("mkdir {INSTALLER}"))
            .command(format!(r"msiexec.exe /i <folder of the download>\{}", msi(host))),
    )
}

/// Windows' store of components is damaged, or has lost files: ERROR_SXS_COMPONENT_STORE_CORRUPT, its numbers and names.
const STORE: [&str; 8] = [
    "0x8007371b",
    "0x80073712",
    "0x800f0831",
    "0x800f0819",
    "0x800f080c",
    "0x800f081f",
    "error: 14098",
    "error: 1168",
];

/// Another remedy for a feature of Windows that was to be turned on and could not be.
pub(in crate::checks::wsl) fn with_store(host: &Host, mut finding: Finding) -> Finding {
    if !matches!(finding.id, "wsl.feature-off" | "wsl.virtualization-off") {
        return finding;
    }
    let texts = ["--install", "enable-feature", "Enable-WindowsOptionalFeature"]
        .into_iter()
        .flat_map(|command| host.recorded_texts(command));
    let failed = texts.into_iter().find_map(|text| {
        let text = text.to_ascii_lowercase();
        STORE.into_iter().find(|error| text.contains(error))
    });
    let Some(error) = failed else { return finding };
    if let Some(remedy) = &mut finding.remedy {
        remedy.commands.clear();
    }
    finding
        .seen(format!("turning the feature on fails with {}", error.trim_start_matches("error: ")))
        .because("Windows cannot turn the feature on: its component store, from which it takes the files, is damaged")
        .remedy(
            "repair Windows in a terminal as administrator, restart it, and turn the feature on again; if the repair itself fails, let \
             `chkdsk C: /f` check the drive at the next start and repeat it; if that does not help, install Windows over itself with \
             Microsoft's ISO (setup.exe, keep files and apps)",
        )
        .command("dism.exe /online /cleanup-image /restorehealth")
        .command("sfc.exe /scannow")
        .command("shutdown /r /t 0")
        .command("wsl.exe --install --no-distribution")
}

/// E_UNEXPECTED in some languages of Windows, and its number.
const CATASTROPHIC: [&str; 8] = [
    "catastrophic failure",
    "schwerwiegender fehler",
    "défaillance irrémédiable",
    "error catastrófico",
    "разрушительный сбой",
    "灾难性故障",
    "0x8000ffff",
    "e_unexpected",
];

/// Another finding for a WSL that is not installed, if `wsl --install` was tried and fails for no reason of Windows.
pub(in crate::checks::wsl) fn failed_install(host: &Host, finding: Finding) -> Finding {
    let is_it = |text: &String| {
        let text = text.to_lowercase();
        CATASTROPHIC.iter().any(|words| text.contains(words))
    };
    if finding.id != "wsl.feature-off" || !host.recorded_texts("--install").iter().any(is_it) {
        return finding;
    }
    let profile = host.windows_profile().ok().filter(|profile| profile.contains(' '));
    let title = "WSL cannot be installed: `wsl --install` ends with \"Catastrophic failure\"";
    let finding = Finding::new("wsl.damaged", title);
    let finding = match profile {
        Some(profile) => finding.seen(format!("the folder of the user: {profile}")).because(
            "the name of this Windows user has a space, at which `wsl --install` of WSL 2.6.1 cuts off the path of the package that \
             it has downloaded",
        ),
        None => finding.because("`wsl --install` could not run the installer that it has downloaded"),
    };
    finding
        .remedy(format!(
            "download the installer ({}) of https://github.com/microsoft/WSL/releases, run it as administrator, restart Windows, and \
             install a distribution",
            msi(host)
        ))
        .command("wsl.exe --install -d Ubuntu")
}

fn version(host: &Host) -> String {
    match host.wsl_versions() {
        Ok(Some(Some(versions))) => versions.wsl.0.map(|part| part.to_string()).join("."),
        _ => "<version>".to_owned(),
    }
}

/// The service of WSL is not installed.
pub(super) fn service_missing(host: &Host) -> Finding {
    if let Some(finding) = without_installer(host) {
        return finding;
    }
    let file = msi(host);
    Finding::new("wsl.damaged", "WSL cannot start: its service (WSLService) is not installed")
        .because("an update of WSL removed its service and did not complete, so every command fails")
        .remedy(format!(
            "remove the remains of WSL's app, run the installer ({file}) of https://github.com/microsoft/WSL/releases as \
             administrator, and restart Windows; if the installer fails, let Microsoft's Program Install and Uninstall \
             troubleshooter remove `Windows Subsystem for Linux` first; distributions are kept"
        ))
        .command("powershell.exe -Command \"Get-AppxPackage *WindowsSubsystemForLinux* | Remove-AppxPackage\"")
        .command(format!(r"msiexec.exe /i <folder of the download>\{file}"))
        .command("shutdown /r /t 0")
}

/// This program runs in the account of Windows itself, as services and scheduled tasks do.
pub(super) fn system_account(host: &Host) -> Option<Finding> {
    let variable = |name: &str| host.env(name).ok().flatten().unwrap_or_default().to_ascii_lowercase();
    let profile = variable("USERPROFILE");
    let is_service =
        profile.contains(r"\system32\config\systemprofile") || profile.contains(r"\serviceprofiles\");
    let name = variable("USERNAME");
    (is_service || name == "system" || name.ends_with('$'))
        .then(|| other_account("an account of Windows itself"))
}

/// Distributions belong to a user, and this account is another.
pub(super) fn other_account(which: &str) -> Finding {
    Finding::new("wsl.other-account", format!("`yolo` runs in {which}, which has no Linux distribution"))
}

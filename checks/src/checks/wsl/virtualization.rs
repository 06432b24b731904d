//! No hypervisor runs, so no virtual machine of WSL can start. WSL has one message for all causes; a recording may hold what
//! Windows says of the firmware and of its boot entry.

use crate::facts::Host;
use crate::finding::Finding;
use crate::wsl::exe_output;

/// Lets Windows start its hypervisor again.
const LAUNCH: &str = "bcdedit /set hypervisorlaunchtype Auto";

/// Windows' Virtual Machine Platform, its boot entry, or virtualization in the firmware.
pub(super) fn off(answer: &str) -> Finding {
    let title =
        "WSL 2 cannot run: Windows' Virtual Machine Platform is off, or virtualization in the PC's firmware";
    let finding = Finding::new("wsl.virtualization-off", title)
        .remedy(
            "turn the Virtual Machine Platform and the hypervisor on in a Windows terminal as administrator, and restart Windows (an \
             Android emulator, VMware, a game's protection or a program that trims Windows may have turned the hypervisor off); if WSL \
             says the same again, enable virtualization (Intel VT-x or AMD SVM) in the firmware",
        )
        .command("wsl.exe --install --no-distribution")
        .command(LAUNCH)
        .command("shutdown /r /t 0");
    reported(finding, answer)
}

/// The finding, if Windows tells which cause it is.
pub(super) fn known(host: &Host, answer: &str) -> Option<Finding> {
    let boot = ["hypervisorlaunchtype", "bcdedit"].into_iter().flat_map(|part| host.recorded_texts(part));
    let is_off =
        boot.into_iter().any(|text| launch_type(&text).is_some_and(|kind| kind.eq_ignore_ascii_case("off")));
    let firmware = firmware(host);
    let new = |what: &str| Finding::new("wsl.virtualization-off", format!("WSL 2 cannot run: {what}"));
    let finding = match (firmware, is_off) {
        (Some(false), _) => new("virtualization is off in the PC's firmware")
            .seen("Windows reports that the firmware does not allow virtualization")
            .because("a firmware update or an empty battery of the mainboard resets the setting; Windows cannot change it")
            .remedy(
                "restart into the firmware (BIOS, UEFI) with the command, and enable virtualization there: Intel VT-x (Virtualization \
                 Technology) or AMD SVM Mode; save, switch the PC off, and start it again",
            )
            .command("shutdown /r /fw /t 0"),
        (_, true) => new("the hypervisor of Windows is switched off")
            .seen("bcdedit: hypervisorlaunchtype Off")
            .because(
                "an Android emulator, VMware, the protection of a game or a program that trims Windows has set it; features and \
                 firmware are not at fault",
            )
            .remedy("switch it on in a Windows terminal as administrator, and restart Windows")
            .command(LAUNCH)
            .command("shutdown /r /t 0"),
        (Some(true), false) => new("no hypervisor runs, although the PC's firmware allows one")
            .seen("Windows reports that virtualization is on in the firmware")
            .because("Windows' Virtual Machine Platform is off or was turned on in part, or its hypervisor is switched off")
            .remedy(
                "turn both on in a Windows terminal as administrator, and restart Windows; if WSL says the same again, turn the \
                 Virtual Machine Platform off (`dism.exe /online /disable-feature /featurename:VirtualMachinePlatform`) and on, \
                 with a restart after each; then turn Windows Security, Device security, Core isolation, Memory integrity on, and \
                 update the firmware (BIOS)",
            )
            .command("dism.exe /online /enable-feature /featurename:VirtualMachinePlatform /all /norestart")
            .command(LAUNCH)
            .command("shutdown /r /t 0"),
        (None, false) => return None,
    };
    Some(reported(finding, answer))
}

fn reported(finding: Finding, answer: &str) -> Finding {
    match exe_output::code(answer) {
        Some(code) => finding.seen(format!("wsl.exe reports {code}")),
        None => finding,
    }
}

/// `hypervisorlaunchtype    Off`, which no language translates.
fn launch_type(text: &str) -> Option<&str> {
    let mut lines = text.lines().map(str::trim);
    lines.find_map(|line| line.strip_prefix("hypervisorlaunchtype")).map(str::trim)
}

/// Whether the firmware allows virtualization, by recorded outputs. While a hypervisor runs, Windows says that it does not.
fn firmware(host: &Host) -> Option<bool> {
    let has_hypervisor = |text: &String| is_true(text.trim()) == Some(true);
    if host.recorded_texts("HypervisorPresent").iter().any(has_hypervisor) {
        return None;
    }
    let of_info = host.recorded_texts("systeminfo");
    if of_info.iter().any(|text| text.contains("hypervisor has been detected")) {
        return None;
    }
    let of_info = of_info.iter().find_map(|text| in_systeminfo(text));
    of_info.or_else(|| {
        let texts = host.recorded_texts("VirtualizationFirmwareEnabled");
        texts.iter().find_map(|text| text.lines().find_map(|line| is_true(line.trim())))
    })
}

/// `True`, `VirtualizationFirmwareEnabled : True` or `firmware=True`.
fn is_true(line: &str) -> Option<bool> {
    let (name, value) = line.rsplit_once([':', '=']).unwrap_or(("", line));
    let is_it = ["", "firmware", "VirtualizationFirmwareEnabled", "HypervisorPresent"].contains(&name.trim());
    match value.trim() {
        "True" | "TRUE" if is_it => Some(true),
        "False" | "FALSE" if is_it => Some(false),
        _ => None,
    }
}

/// The line of `systeminfo` in some languages.
fn in_systeminfo(text: &str) -> Option<bool> {
    const LABELS: [&str; 2] = ["Virtualization Enabled In Firmware", "Virtualisierung in Firmware aktiviert"];
    let value = text.lines().find_map(|line| {
        let (label, value) = line.rsplit_once(':')?;
        LABELS.iter().any(|known| label.ends_with(known)).then(|| value.trim())
    })?;
    match value {
        "Yes" | "Ja" => Some(true),
        "No" | "Nein" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn windows_tells_the_cause() {
        assert_eq!(launch_type("identifier {current}\nhypervisorlaunchtype    Off\n"), Some("Off"));
        let info = "Hyper-V Requirements:      VM Monitor Mode Extensions: Yes\n   Virtualization Enabled In Firmware: No\n";
        assert_eq!(in_systeminfo(info), Some(false));
        assert_eq!(in_systeminfo("A hypervisor has been detected."), None);
        assert_eq!(is_true("VirtualizationFirmwareEnabled : True"), Some(true));
        assert_eq!(is_true("VMMonitorModeExtensions : True"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(hypervisorlaunchtype|Firmware|:|=|True|Yes|\\PC|\n){0,12}") {
            let _ = (launch_type(&text), in_systeminfo(&text), is_true(&text));
        }
    }
}

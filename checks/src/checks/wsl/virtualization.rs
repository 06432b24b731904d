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
            .because("a firmware update or a dead mainboard battery resets the setting; Windows cannot change it")
            .remedy(
                "restart into the firmware (BIOS, UEFI) with the command, in a Windows terminal as administrator, and enable virtualization there: Intel VT-x (Virtualization \
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
            .because("Windows' Virtual Machine Platform is off or only partly turned on, or its hypervisor is switched off")
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

/// Whether the firmware allows virtualization, by recorded outputs. While a hypervisor runs, Windows says that it does not, and
/// one may run for Windows' own protection although no virtual machine can start.
fn firmware(host: &Host) -> Option<bool> {
    let of_hypervisor = host.recorded_texts("HypervisorPresent");
    let hypervisor = of_hypervisor.iter().filter_map(|text| has_hypervisor(text)).reduce(|a, b| a || b);
    if hypervisor == Some(true) {
        return None;
    }
    let of_info = host.recorded_texts("systeminfo");
    if of_info.iter().any(|text| text.contains("hypervisor has been detected")) {
        return None;
    }
    let of_info = of_info.iter().find_map(|text| in_systeminfo(text));
    of_info.or_else(|| {
        let texts = host.recorded_texts("VirtualizationFirmwareEnabled");
        let allows = texts.iter().find_map(|text| allows_virtualization(text))?;
        (allows || hypervisor == Some(false)).then_some(allows)
    })
}

/// Whether a hypervisor runs: `True`, `HypervisorPresent : True` or `hypervisor=True`.
fn has_hypervisor(text: &str) -> Option<bool> {
    flag(text, &["hypervisor", "HypervisorPresent"])
}

/// What Windows says of the firmware: `True`, `VirtualizationFirmwareEnabled : True` or `firmware=True`.
fn allows_virtualization(text: &str) -> Option<bool> {
    flag(text, &["firmware", "VirtualizationFirmwareEnabled"])
}

/// The first value of one of these names, or else the first one without a name.
fn flag(text: &str, names: &[&str]) -> Option<bool> {
    let named = |names: &[&str]| {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once([':', '=']).unwrap_or(("", line));
            let value = value.trim();
            let is = |word: &str| value.eq_ignore_ascii_case(word);
            let known = names.contains(&name.trim()) && (is("true") || is("false"));
            known.then(|| is("true"))
        })
    };
    named(names).or_else(|| named(&[""]))
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
    use serde_json::json;

    use super::*;

    #[test]
    fn windows_tells_the_cause() {
        assert_eq!(launch_type("identifier {current}\nhypervisorlaunchtype    Off\n"), Some("Off"));
        let info = "Hyper-V Requirements:      VM Monitor Mode Extensions: Yes\n   Virtualization Enabled In Firmware: No\n";
        assert_eq!(in_systeminfo(info), Some(false));
        assert_eq!(in_systeminfo("A hypervisor has been detected."), None);
        assert_eq!(allows_virtualization("VirtualizationFirmwareEnabled : True"), Some(true));
        assert_eq!(allows_virtualization("VMMonitorModeExtensions : True"), None);
        assert_eq!(allows_virtualization("False\r\n"), Some(false));
        assert_eq!(has_hypervisor("hypervisor=False\r\nfirmware=True\r\n"), Some(false));
    }

    #[test]
    fn a_running_hypervisor_hides_what_the_firmware_allows() {
        const BOTH: &str = "'hypervisor='+$a.HypervisorPresent; 'firmware='+$b.VirtualizationFirmwareEnabled";
        const ALONE: &str = "(Get-CimInstance Win32_Processor).VirtualizationFirmwareEnabled";
        for (command, output, expected) in [
            (BOTH, "hypervisor=True\r\nfirmware=False\r\n", None),
            (BOTH, "hypervisor=False\r\nfirmware=False\r\n", Some(false)),
            (BOTH, "hypervisor=False\r\nfirmware=True\r\n", Some(true)),
            (ALONE, "False\r\n", None),
            (ALONE, "True\r\n", Some(true)),
        ] {
            let recording = json!({ "version": 1, "os": "windows", "commands": { command: output } });
            assert_eq!(firmware(&Host::from_value(recording).unwrap().0), expected, "{output}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(hypervisorlaunchtype|Firmware|:|=|True|Yes|\\PC|\n){0,12}") {
            let _ = (launch_type(&text), in_systeminfo(&text), allows_virtualization(&text), has_hypervisor(&text));
        }
    }
}

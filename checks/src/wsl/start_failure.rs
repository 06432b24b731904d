//! Why WSL does not start, from the errors of its programs. The messages are translated, but each ends with a code that
//! names the steps that led to the error: `Wsl/Service/CreateInstance/CreateVm/MountVhd/HCS/ERROR_FILE_NOT_FOUND`. The last
//! word is the name or the number of a Windows error. Sources: microsoft/WSL `wslservice.idl`, `ExecutionContext.h`.

use super::exe_output::codes;

/// What is wrong, if a code tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// `system.vhd`, the kernel or another file that the installer of WSL brings does not exist.
    FileOfWsl,
    /// The virtual disk of a distribution does not exist.
    DiskMissing,
    /// The Linux file system of a distribution is damaged.
    DiskDamaged,
    /// Windows cannot read the file that is the disk of a distribution: NTFS or the drive is damaged.
    DiskUnreadable,
    /// The drive of the disk is write-protected.
    DiskReadOnly,
    /// Windows compresses the disk, or keeps it as a sparse file.
    DiskCompressed,
    /// Windows encrypts the disk (EFS).
    DiskEncrypted,
    /// The disk is in the folder of an app that was installed on, or moved to, another drive.
    DiskOfMovedApp,
    /// Another program has the disk open.
    DiskInUse,
    /// The disk is on a drive that cannot hold one.
    DiskUnsupported,
    /// Windows looks for the disk at a path such as `E:ext4.vhdx`, which is none.
    DiskMisplaced,
    /// Windows' own part for virtual disks does not run.
    NoVirtualDisks,
    /// A plug-in of WSL, such as that of Defender for Endpoint, fails.
    Plugin,
    /// Windows does not let WSL open a file.
    AccessDenied,
    /// The virtual machine did not answer.
    Timeout,
    /// The network of the virtual machine could not be set up.
    Network,
    /// The GPU could not be given to the virtual machine.
    Gpu,
    /// WSL's service is stuck.
    Stuck,
    /// The virtual machine crashed.
    Crashed,
    /// WSL's service is not installed.
    ServiceMissing,
    /// The installer of WSL fails.
    Installer,
    /// A download failed.
    Download,
    /// Windows has no memory for the virtual machine.
    Memory,
    /// The kernel that `.wslconfig` names does not exist.
    CustomKernel,
    /// Virtual machines may not log on as a service.
    Logon,
    /// The account SYSTEM cannot use WSL.
    SystemAccount,
    /// The file of Windows with which virtual machines start is not signed any more: a preview of Windows has expired.
    Unsigned,
    /// Windows refuses to create the virtual machine.
    Refused,
    /// WSL's service, or one that it calls, does not start or answer.
    ServiceSilent,
    /// WSL's service ends in the middle of a call.
    ServiceCrashes,
    /// A network program of Windows has put itself between WSL and its sockets (a Winsock provider).
    Winsock,
    /// `.wslconfig` asks for nested virtualization, which this Windows does not have.
    Nested,
    /// A launcher of a distribution fails with a number that nothing else explains.
    Launcher,
    /// Another error while a distribution was started.
    Other,
}

/// An error of WSL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure<'a> {
    /// What is wrong.
    pub fault: Fault,
    /// The code as it was printed; empty if the message has none.
    pub code: &'a str,
    /// The file that the message names.
    pub file: Option<&'a str>,
}

/// The error in the output of a program of WSL. A setup is `--install`, `--update` or the list of what can be installed.
pub fn failure(text: &str, is_setup: bool) -> Option<Failure<'_>> {
    let file = quoted_file(text);
    let of_code = codes(text).find_map(|code| Some((fault(code, text, file, is_setup)?, code)));
    let found = of_code.or_else(|| without_code(text, is_setup).map(|fault| (fault, "")));
    found.map(|(fault, code)| Failure { fault, code, file })
}

/// Messages that end without a code, or whose code is the number of a Linux error.
fn without_code(text: &str, is_setup: bool) -> Option<Fault> {
    if is_setup && (text.contains("DistributionInfo.json") || text.contains("Forbidden (403)")) {
        return Some(Fault::Download);
    }
    if is_setup && text.contains("exit code: 1603") {
        return Some(Fault::Installer);
    }
    is_of_file_system(text).then_some(Fault::DiskDamaged)
}

/// `The distribution failed to start. Error code: 117, failure step: 2`: 5 is an I/O error, 74 a bad message and 117 a
/// structure that needs cleaning.
fn is_of_file_system(text: &str) -> bool {
    text.lines().filter_map(|line| line.split_once("failure step")).any(|(before, _)| {
        let mut numbers = before.split(|letter: char| !letter.is_ascii_digit());
        numbers.any(|number| matches!(number, "5" | "74" | "117"))
    })
}

/// `Failed to attach disk 'C:\…\ext4.vhdx' to WSL2`; translations keep the file, between quotes of their own.
fn quoted_file(text: &str) -> Option<&str> {
    let end = [".vhdx", ".vhd"].iter().find_map(|end| Some(text.find(end)? + end.len()))?;
    let start = text[..end].rfind(['\'', '"', '«', '“', '„', '「', '‘', '\n'])?;
    let file =
        text[start..end].trim_start_matches(|letter: char| !letter.is_ascii_alphabetic() && letter != '\\');
    let is_path = file.contains('\\') || file.get(1..2) == Some(":");
    is_path.then_some(file)
}

/// Whether the file is one that the installer of WSL brings.
fn is_of_wsl(file: &str) -> bool {
    let file = file.to_ascii_lowercase();
    file.contains(r"\program files\wsl\") || file.ends_with(r"\system.vhd") || file.ends_with(r"\modules.vhd")
}

fn fault(code: &str, text: &str, file: Option<&str>, is_setup: bool) -> Option<Fault> {
    let code = code.to_ascii_lowercase();
    let (steps, error) = code.rsplit_once('/').unwrap_or(("", &code));
    let has = |step: &str| steps.split('/').any(|one| one == step);
    let is = |names: &[&str]| names.contains(&error);
    match error {
        "wsl_e_local_system_not_supported" => return Some(Fault::SystemAccount),
        "wsl_e_vm_crashed" => return Some(Fault::Crashed),
        "wsl_e_custom_kernel_not_found" => return Some(Fault::CustomKernel),
        "wsl_e_disk_corrupted" => return Some(Fault::DiskDamaged),
        "wsl_e_vmswitch_not_found" => return Some(Fault::Network),
        // The file of a disk could not be made: STATUS_INVALID_PARAMETER of a file system that is not NTFS.
        "0xd000000d" => return Some(Fault::DiskUnsupported),
        "0xc03a0014" | "error_virtdisk_provider_not_found" => return Some(Fault::NoVirtualDisks),
        "wsl_e_plugin_requires_update" => return Some(Fault::Plugin),
        // Its error may have any name, also that of a file.
        _ if has("plugin") => return Some(Fault::Plugin),
        "error_service_does_not_exist" | "0x80070424" => return Some(Fault::ServiceMissing),
        "0xc03a001a" => return Some(Fault::DiskCompressed),
        "error_file_encrypted" | "0x80071772" => return Some(Fault::DiskEncrypted),
        // ERROR_APPX_FILE_NOT_ENCRYPTED.
        "0x80070199" => return Some(Fault::DiskOfMovedApp),
        // Another setup runs: nothing is wrong. The class that is not registered has its own finding.
        "error_install_already_running" | "0x80070652" | "regdb_e_classnotreg" => return None,
        _ => {}
    }
    let is_disk = ["mountvhd", "mountdisk", "attachdisk"].iter().any(|step| has(step));
    // A launcher prints the number without the steps.
    let is_launcher = steps.is_empty() && text.contains(LAUNCHER);
    let is_start =
        is_launcher || ["createinstance", "createvm", "registerdistro"].iter().any(|step| has(step));
    let is_service = is(&["error_service_disabled", "0x80070422"]);
    // These numbers of a launcher are of the network too: WBEM's "not found", and a port that is taken.
    if !is_service && (has("configurenetworking") || is_launcher && is(&["0x80041002", "0xffffffff"])) {
        return Some(Fault::Network);
    }
    if !is_service && has("configuregpu") {
        return Some(Fault::Gpu);
    }
    if is_of_download(error, is_setup, is_start || is_disk) {
        return Some(Fault::Download);
    }
    if has("callmsi") || has("updatepackage") || is(&["error_install_failure", "0x80070643"]) {
        return Some(Fault::Installer);
    }
    let is_file_of_wsl = match file {
        Some(file) => is_of_wsl(file),
        None => has("createvm"),
    };
    if is(&["error_file_not_found", "0x80070002", "error_path_not_found", "0x80070003"])
        && (is_start || is_disk)
    {
        return match (is_file_of_wsl, is_disk) {
            (true, _) => Some(Fault::FileOfWsl),
            (false, true) => Some(Fault::DiskMissing),
            (false, false) => Some(Fault::Other),
        };
    }
    if has("createvm") && is(&["error_not_found", "0x80070490"]) {
        return Some(Fault::FileOfWsl);
    }
    if is_disk && is(&["error_invalid_drive", "0x8007000f"]) {
        return Some(Fault::DiskMissing);
    }
    // Otherwise it may be a download that is damaged.
    if (is_disk || is_start) && is(&["error_file_corrupt", "0x80070570", "error_disk_corrupt", "0x80070571"])
    {
        return Some(if is_disk && is_file_of_wsl { Fault::FileOfWsl } else { Fault::DiskUnreadable });
    }
    if is_disk {
        match error {
            "error_write_protect" | "0x80070013" => return Some(Fault::DiskReadOnly),
            "error_sharing_violation" | "0x80070020" => return Some(Fault::DiskInUse),
            // WSL's own files are on the drive of Windows, which can hold them.
            "error_not_supported" | "0x80070032" if is_file_of_wsl => return Some(Fault::NoVirtualDisks),
            "error_not_supported" | "0x80070032" | "0x8007052e" => return Some(Fault::DiskUnsupported),
            "error_invalid_name" | "0x8007007b" if file.is_some_and(|file| !file.contains('\\')) => {
                return Some(Fault::DiskMisplaced);
            }
            _ => {}
        }
    }
    // A setup calls other services too.
    let is_of_service = !is_setup || is_start || has("service");
    if is_of_service && is(&["wsaetimedout", "0x8007274c"]) {
        return Some(Fault::Stuck);
    }
    if is_of_service && is(&["rpc_s_call_failed", "0x800706be", "rpc_s_call_failed_dne", "0x800706bf"]) {
        return Some(Fault::ServiceCrashes);
    }
    if let Some(fault) = of_windows(error, has("createvm"), is_launcher) {
        return Some(fault);
    }
    match error {
        "e_accessdenied" | "0x80070005" => return (is_start || is_disk).then_some(Fault::AccessDenied),
        "hcs_e_connection_timeout" | "0x80370109" => return Some(Fault::Timeout),
        // The virtual machine was started, and its kernel did not answer.
        "error_timeout" | "0x800705b4" if has("createvm") => return Some(Fault::Timeout),
        "e_unexpected" | "0x8000ffff" | "error_timeout" | "0x800705b4" | "wsaeconnreset" | "0x80072746"
        | "wsaeconnaborted" | "0x80072745" => {
            let of_linux = is_of_file_system(text);
            return Some(if of_linux { Fault::DiskDamaged } else { Fault::Stuck });
        }
        "e_outofmemory"
        | "0x8007000e"
        | "error_no_system_resources"
        | "0x800705aa"
        | "error_not_enough_memory"
        | "0x80070008"
        | "error_commitment_limit"
        | "0x800705af" => return Some(Fault::Memory),
        "error_logon_type_not_granted" | "0x80070569" => return Some(Fault::Logon),
        "e_fail" if is_of_file_system(text) => return Some(Fault::DiskDamaged),
        _ => {}
    }
    let is_known = super::exe_output::trouble(&code).is_some_and(|known| !known.is_of_disk());
    // The user named a distribution that there is not, or a command that the distribution has not, or started a launcher
    // twice (ERROR_FILE_EXISTS, ERROR_ALREADY_EXISTS).
    let is_of_user = is(&["wsl_e_distro_not_found", "wsl_e_user_not_found", "e_invalidarg"])
        || is_launcher && is(&["0x80070050", "0x800700b7"]);
    let other = if is_launcher { Fault::Launcher } else { Fault::Other };
    (is_start && !is_known && !is_of_user).then_some(other)
}

/// What the launchers of distributions print before a number.
const LAUNCHER: &str = "WslRegisterDistribution failed";

/// Parts of Windows that WSL needs. Their errors are of a start whatever the step is, unless a user can cause them too.
fn of_windows(error: &str, has_machine: bool, is_launcher: bool) -> Option<Fault> {
    Some(match error {
        "nte_bad_signature" | "0x80090006" | "error_invalid_data" | "0x8007000d"
            if has_machine || is_launcher =>
        {
            Fault::Unsigned
        }
        "e_invalidarg" | "0x80070057" if has_machine || is_launcher => Fault::Refused,
        "wsl_e_nested_not_supported" => Fault::Nested,
        "wsaeopnotsupp" | "0x8007273d" | "rpc_x_bad_stub_data" | "0x800706f7" => Fault::Winsock,
        "error_service_request_timeout"
        | "0x8007041d"
        | "co_e_server_exec_failure"
        | "0x80080005"
        | "rpc_s_server_unavailable"
        | "0x800706ba" => Fault::ServiceSilent,
        _ => return None,
    })
}

/// WinINet, Windows Update, its delivery optimization, and the status of an HTTP server. A setup also starts what it has
/// installed, whose errors have names that a download has too.
fn is_of_download(error: &str, is_setup: bool, is_of_start: bool) -> bool {
    const ERRORS: [&str; 6] =
        ["0x80072ee2", "0x80072ee7", "0x80072efd", "0x80072efe", "0x80072eff", "0x80072f8f"];
    let is_setup_error = error.starts_with("0x8024")
        || error.starts_with("0x80d0")
        || error.starts_with("0x8019")
        || error.starts_with("http_e_")
        || !is_of_start
            && ["0x80070490", "0x80004002", "error_not_found", "e_nointerface", "rpc_s_call_failed"]
                .contains(&error);
    ERRORS.contains(&error) || error.starts_with("wininet_e_") || is_setup && is_setup_error
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> Option<Fault> {
        failure(text, false).map(|found| found.fault)
    }

    #[test]
    fn a_file_of_wsl_is_not_a_disk_of_the_user() {
        let text = "无法将磁盘“C:\\Program Files\\WSL\\system.vhd”附加到 WSL2： 系统找不到指定的文件。\n\
                    错误代码: Wsl/Service/CreateInstance/CreateVm/MountVhd/HCS/ERROR_FILE_NOT_FOUND\n";
        let found = failure(text, false).unwrap();
        assert_eq!((found.fault, found.file), (Fault::FileOfWsl, Some("C:\\Program Files\\WSL\\system.vhd")));
        let text = "Failed to attach disk 'D:\\wsl\\ext4.vhdx' to WSL2: The system cannot find the path specified.\n\
                    Error code: Wsl/Service/CreateInstance/MountVhd/HCS/ERROR_PATH_NOT_FOUND\n";
        let found = failure(text, false).unwrap();
        assert_eq!((found.fault, found.file), (Fault::DiskMissing, Some("D:\\wsl\\ext4.vhdx")));
        for code in
            ["CreateInstance/CreateVm/HCS/ERROR_FILE_NOT_FOUND", "RegisterDistro/CreateVm/HCS/0x80070003"]
        {
            assert_eq!(of(&format!("Error code: Wsl/Service/{code}")), Some(Fault::FileOfWsl));
        }
    }

    #[test]
    fn errors_of_a_start_are_told_apart_by_their_code() {
        for (code, fault) in [
            ("CreateInstance/WSL_E_DISK_CORRUPTED", Fault::DiskDamaged),
            ("CreateInstance/MountVhd/HCS/0x80070570", Fault::DiskUnreadable),
            ("CreateInstance/MountVhd/HCS/0x80070013", Fault::DiskReadOnly),
            ("CreateInstance/MountVhd/HCS/0xc03a001a", Fault::DiskCompressed),
            ("CreateInstance/MountVhd/HCS/ERROR_SHARING_VIOLATION", Fault::DiskInUse),
            ("CreateInstance/MountVhd/HCS/0x80070032", Fault::DiskUnsupported),
            ("CreateInstance/MountDisk/HCS/E_ACCESSDENIED", Fault::AccessDenied),
            ("CreateInstance/CreateVm/HCS/HCS_E_CONNECTION_TIMEOUT", Fault::Timeout),
            ("CreateInstance/CreateVm/ConfigureNetworking/HNS/0x80041002", Fault::Network),
            ("CreateInstance/CreateVm/ConfigureGpu/HCS/ERROR_PATH_NOT_FOUND", Fault::Gpu),
            ("E_UNEXPECTED", Fault::Stuck),
            ("WSL_E_VM_CRASHED", Fault::Crashed),
            ("CreateInstance/CreateVm/HCS/0x800705aa", Fault::Memory),
            ("CreateInstance/CreateVm/WSL_E_CUSTOM_KERNEL_NOT_FOUND", Fault::CustomKernel),
            ("CreateInstance/CreateVm/HCS/0x80070569", Fault::Logon),
            ("CreateInstance/CreateVm/HCS/0x80040155", Fault::Other),
            ("CreateInstance/CreateVm/0x800705b4", Fault::Timeout),
            ("RegisterDistro/CreateVm/ERROR_TIMEOUT", Fault::Timeout),
            ("0x800705b4", Fault::Stuck),
            ("CreateInstance/CreateVm/HCS/0x80090006", Fault::Unsigned),
            ("CreateInstance/CreateVm/HCS/ERROR_INVALID_DATA", Fault::Unsigned),
            ("CreateInstance/CreateVm/HCS/E_INVALIDARG", Fault::Refused),
            ("CreateInstance/CreateVm/WSL_E_NESTED_NOT_SUPPORTED", Fault::Nested),
            ("0x8007273d", Fault::Winsock),
            ("RegisterDistro/0xd000000d", Fault::DiskUnsupported),
            ("CreateInstance/0x800706f7", Fault::Winsock),
            ("0x80080005", Fault::ServiceSilent),
            ("RPC_S_CALL_FAILED", Fault::ServiceCrashes),
            ("0x8007274c", Fault::Stuck),
            ("RegisterDistro/0xc03a0014", Fault::NoVirtualDisks),
            ("0xc03a0014", Fault::NoVirtualDisks),
            ("CreateVm/MountVhd/0x80070032", Fault::NoVirtualDisks),
            ("CreateInstance/CreateVm/Plugin/ERROR_FILE_NOT_FOUND", Fault::Plugin),
            ("CreateInstance/CreateVm/Plugin/0x8007007f", Fault::Plugin),
            ("CreateInstance/CreateVm/WSL_E_PLUGIN_REQUIRES_UPDATE", Fault::Plugin),
        ] {
            assert_eq!(of(&format!("…\nError code: Wsl/Service/{code}\n")), Some(fault), "{code}");
        }
        assert_eq!(of("wsl: … CreateInstance/CreateVm/ConfigureNetworking/0x8007054f"), Some(Fault::Network));
        assert_eq!(
            of("The distribution failed to start. Error code: 117, failure step: 2"),
            Some(Fault::DiskDamaged)
        );
        assert_eq!(of("WslRegisterDistribution failed with error: 0xc03a001a"), Some(Fault::DiskCompressed));
        assert_eq!(of("WslRegisterDistribution failed with error: 0x80070199"), Some(Fault::DiskOfMovedApp));
        assert_eq!(of("Error code: Wsl/ERROR_SERVICE_DOES_NOT_EXIST"), Some(Fault::ServiceMissing));
        let text = "Failed to attach disk 'E:ext4.vhdx' to WSL2: The filename, directory name, or volume label syntax is incorrect.\n\
                    Error code: Wsl/Service/CreateInstance/MountVhd/HCS/ERROR_INVALID_NAME";
        let found = failure(text, false).unwrap();
        assert_eq!((found.fault, found.file), (Fault::DiskMisplaced, Some("E:ext4.vhdx")));
        let text = "Failed to attach disk 'C:\\Program Files\\WSL\\system.vhd' to WSL2: The request is not supported.\n\
                    Error code: Wsl/Service/CreateInstance/CreateVm/MountDisk/HCS/ERROR_NOT_SUPPORTED";
        assert_eq!(of(text), Some(Fault::NoVirtualDisks));
    }

    #[test]
    fn a_launcher_prints_a_number_without_steps() {
        for (number, fault) in [
            ("0x8007041d", Some(Fault::ServiceSilent)),
            ("0x80090006", Some(Fault::Unsigned)),
            ("0x8007000d", Some(Fault::Unsigned)),
            ("0x80070057", Some(Fault::Refused)),
            ("0xffffffff", Some(Fault::Network)),
            ("0x80041002", Some(Fault::Network)),
            ("0x80070520", Some(Fault::Launcher)),
            ("0x80004005", Some(Fault::Launcher)),
            ("0x80070005", Some(Fault::AccessDenied)),
            ("0x800706be", Some(Fault::ServiceCrashes)),
            ("0xc03a0014", Some(Fault::NoVirtualDisks)),
            // It was started twice; virtualization and features have their own words.
            ("0x800700b7", None),
            ("0x80370102", None),
            ("0x8007019e", None),
            ("0x80070422", None),
        ] {
            let text =
                format!("Installing…\nWslRegisterDistribution failed with error: {number}\nError: {number}");
            assert_eq!(of(&text), fault, "{number}");
        }
        assert_eq!(of("process exited with code 0xffffffff"), None);
    }

    #[test]
    fn what_the_user_typed_and_what_others_report_is_no_failure() {
        for code in [
            "Wsl/Service/WSL_E_DISTRO_NOT_FOUND",
            "Wsl/Service/CreateInstance/CreateVm/HCS/HCS_E_HYPERV_NOT_INSTALLED",
            "Wsl/Service/E_ACCESSDENIED",
            "Wsl/E_INVALIDARG",
            "Wsl/Service/CreateInstance/E_INVALIDARG",
            "Wsl/InstallDistro/0x8007000d",
            "Wsl/CallMsi/Install/REGDB_E_CLASSNOTREG",
            "Wsl/Service/CreateInstance/CreateVm/ConfigureNetworking/HNS/0x80070422",
        ] {
            assert_eq!(of(&format!("Error code: {code}")), None, "{code}");
        }
        assert_eq!(of("Epoch 5, 74 images, failure rate 0"), None);
    }

    #[test]
    fn a_setup_fails_by_its_download_or_its_installer() {
        let setup = |text: &str| failure(text, true).map(|found| found.fault);
        assert_eq!(setup("Error code: Wsl/InstallDistro/0x80072efd"), Some(Fault::Download));
        assert_eq!(setup("Error: 0x8024500c"), Some(Fault::Download));
        assert_eq!(setup("Error code: Wsl/UpdatePackage/WININET_E_TIMEOUT"), Some(Fault::Download));
        assert_eq!(setup("Update failed (exit code: 1603)."), Some(Fault::Installer));
        assert_eq!(setup("Error code: Wsl/CallMsi/Install/ERROR_INSTALL_FAILURE"), Some(Fault::Installer));
        assert_eq!(setup("Error code: Wsl/CallMsi/Install/0x80070652"), None);
        assert_eq!(setup("Error code: Wsl/InstallDistro/ERROR_NOT_FOUND"), Some(Fault::Download));
        assert_eq!(setup("Error code: Wsl/InstallDistro/RPC_S_CALL_FAILED"), Some(Fault::Download));
        let start = "Error code: Wsl/InstallDistro/Service/RegisterDistro/CreateVm/ERROR_NOT_FOUND";
        assert_eq!(setup(start), Some(Fault::FileOfWsl));
        assert_eq!(setup("Error code: Wsl/InstallDistro/0x80070570"), None);
        assert_eq!(of("Error: 0x80004002"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_accepted(text in ".{0,200}", code in "[A-Za-z0-9_/]{0,40}", setup: bool) {
            let _ = failure(&text, setup);
            let _ = failure(&format!("'D:\\{text}.vhdx' failure step Wsl/{code}"), setup);
        }
    }
}

//! Windows services without which WSL does not start. Programs that promise a faster Windows disable them, and
//! every command of WSL then fails with 0x80070422.

use crate::facts::Host;
use crate::finding::Finding;
use crate::status::Status;
use crate::wsl::exe_output::{self, Trouble};

/// Where Windows keeps how a service starts; 4 is disabled.
const SERVICES: &str = r"HKLM\SYSTEM\CurrentControlSet\Services";
const DISABLED: &str = "4";
/// By name, with the name in the list of services: WSL's own, then those that it needs.
const NEEDED: [(&str, &str); 6] = [
    ("WSLService", "WSL Service"),
    ("LxssManager", "LxssManager"),
    ("vmcompute", "Hyper-V Host Compute Service"),
    ("hns", "Host Network Service"),
    ("SharedAccess", "Internet Connection Sharing"),
    (DNS_CLIENT, "DNS Client"),
];
/// Those of the network, without which WSL starts if its network is not NAT.
const OF_NETWORK: [&str; 3] = ["hns", "SharedAccess", DNS_CLIENT];
/// Windows does not let `sc.exe` change it.
const DNS_CLIENT: &str = "Dnscache";

/// The finding, if WSL says that a service is disabled, or that one does not run that it needs for its network.
pub(super) fn disabled(host: &Host, answers: &[&str]) -> Option<Finding> {
    let says_disabled = |answer: &str| exe_output::trouble(answer) == Some(Trouble::ServiceDisabled);
    let start = |name: &str| start(host, name);
    let is_disabled = |name: &str| is_disabled(host, name);
    let answer = answers.iter().find(|answer| {
        says_disabled(answer) || is_inactive(answer, OF_NETWORK.iter().any(|name| is_disabled(name)))
    })?;
    let code = exe_output::code(answer).unwrap_or_default();
    let is_of_network = code.to_ascii_lowercase().contains("configurenetworking");
    let mut services: Vec<(&str, &str)> = NEEDED.into_iter().filter(|(name, _)| is_disabled(name)).collect();
    if services.is_empty() {
        // The path in WSL's error ends with the service that it could not start; HNS starts Internet Connection Sharing.
        let is_suspect = |name: &str| start(name).is_none();
        if is_of_network || code.contains("HNS") {
            services.extend([NEEDED[3], NEEDED[4]].into_iter().filter(|(name, _)| is_suspect(name)));
            if services.is_empty() {
                services.push(NEEDED[4]);
            }
        } else if code.contains("HCS") || code.contains("CreateVm") {
            services.push(NEEDED[2]);
        } else {
            services.push(NEEDED[0]);
        }
    }
    let names: Vec<String> = services
        .iter()
        .map(|(name, shown)| if name == shown { (*name).to_owned() } else { format!("{name} ({shown})") })
        .collect();
    let is_known = services.iter().any(|(name, _)| is_disabled(name));
    let (what, status) = match falls_back(answer) {
        Some(true) => return None,
        Some(false) => ("WSL has no network", Status::Warning),
        None => ("WSL cannot start", Status::Error),
    };
    let title = match services.len() {
        1 => format!("{what}: the Windows service {} is disabled", names[0]),
        _ if is_known => {
            format!("{what}: the Windows services {} are disabled", names.join(" and "))
        }
        _ => format!("{what}: one of the Windows services {} is disabled", names.join(" and ")),
    };
    let finding = Finding::new("wsl.service-disabled", title).status(status);
    let finding = match exe_output::code(answer) {
        Some(code) => finding.seen(format!("wsl.exe reports {code}")),
        None => finding,
    };
    let has_dns_client = services.iter().any(|(name, _)| *name == DNS_CLIENT);
    let commands = services.iter().flat_map(|(name, _)| match *name {
        DNS_CLIENT => vec![format!(r"reg.exe add {SERVICES}\{DNS_CLIENT} /v Start /t REG_DWORD /d 2 /f")],
        name => vec![format!("sc.exe config {name} start= demand"), format!("sc.exe start {name}")],
    });
    let finding = commands.fold(finding, Finding::command);
    Some(match () {
        () if has_dns_client => finding
            .remedy("turn the service on again in a Windows terminal as administrator, and restart Windows")
            .command("shutdown /r /t 0"),
        // WSL runs, and takes the network when it starts again.
        () if status == Status::Warning => finding.command(super::SHUTDOWN),
        () => finding,
    })
}

/// How Windows starts a service or driver.
fn start(host: &Host, name: &str) -> Option<String> {
    host.registry(&format!(r"{SERVICES}\{name}\Start")).ok().flatten()
}

/// Whether Windows never starts this service or driver.
pub(super) fn is_disabled(host: &Host, name: &str) -> bool {
    start(host, name).is_some_and(|start| start.trim() == DISABLED)
}

/// Whether WSL starts with another network, if it starts all the same: `falling back to networkingMode VirtioProxy`.
fn falls_back(answer: &str) -> Option<bool> {
    let answer = answer.to_ascii_lowercase();
    // In every language the second mode is the one that WSL takes instead.
    let instead = answer.split("networkingmode ").nth(2)?;
    Some(!instead.starts_with("none"))
}

/// ERROR_SERVICE_NOT_ACTIVE: a service that WSL's network needs does not run. A launcher prints only the number.
fn is_inactive(answer: &str, has_disabled: bool) -> bool {
    exe_output::codes(answer).any(|code| {
        let code = code.to_ascii_lowercase();
        let is_it = code.ends_with("0x80070426") || code.ends_with("error_service_not_active");
        is_it && (has_disabled || code.contains("configurenetworking"))
    })
}

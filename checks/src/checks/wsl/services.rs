//! Windows services without which WSL does not start. Programs that promise a faster Windows disable them, and
//! every command of WSL then fails with 0x80070422.

use crate::facts::Host;
use crate::finding::Finding;
use crate::wsl::exe_output::{self, Trouble};

/// Where Windows keeps how a service starts; 4 is disabled.
const SERVICES: &str = r"HKLM\SYSTEM\CurrentControlSet\Services";
const DISABLED: &str = "4";
/// By name, with the name in the list of services: WSL's own, then those that it needs.
const NEEDED: [(&str, &str); 4] = [
    ("WSLService", "WSL Service"),
    ("LxssManager", "LxssManager"),
    ("vmcompute", "Hyper-V Host Compute Service"),
    ("hns", "Host Network Service"),
];

/// The finding, if WSL says that a service is disabled.
pub(super) fn disabled(host: &Host, answers: &[&str]) -> Option<Finding> {
    let says = |answer: &&&str| exe_output::trouble(answer) == Some(Trouble::ServiceDisabled);
    let answer = answers.iter().find(says)?;
    let start = |name: &str| host.registry(&format!(r"{SERVICES}\{name}\Start")).ok().flatten();
    let mut services: Vec<(&str, &str)> = NEEDED
        .into_iter()
        .filter(|(name, _)| start(name).is_some_and(|start| start.trim() == DISABLED))
        .collect();
    if services.is_empty() {
        // The path in WSL's error ends with the service that it could not start.
        let code = exe_output::code(answer).unwrap_or_default();
        services.push(if code.contains("HNS") {
            NEEDED[3]
        } else if code.contains("HCS") || code.contains("CreateVm") {
            NEEDED[2]
        } else {
            NEEDED[0]
        });
    }
    let names: Vec<String> = services
        .iter()
        .map(|(name, shown)| if name == shown { (*name).to_owned() } else { format!("{name} ({shown})") })
        .collect();
    let title = match services.len() {
        1 => format!("WSL cannot start: the Windows service {} is disabled", names[0]),
        _ => format!("WSL cannot start: the Windows services {} are disabled", names.join(" and ")),
    };
    let finding = Finding::new("wsl.service-disabled", title);
    let finding = match exe_output::code(answer) {
        Some(code) => finding.seen(format!("wsl.exe reports {code}")),
        None => finding,
    };
    let commands = services.iter().flat_map(|(name, _)| {
        [format!("sc.exe config {name} start= demand"), format!("sc.exe start {name}")]
    });
    Some(commands.fold(finding, Finding::command))
}

//! Whether the ranks of other machines can reach WSL: by default it is behind NAT, and in
//! mirrored mode behind the Hyper-V firewall.

use crate::checks::network::port::elsewhere;
use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::wsl::sizing::MIRRORED_NEEDS_BUILD;

/// WSL's VM creator id in the Hyper-V firewall (Microsoft, "Accessing network applications with WSL").
const CREATOR: &str = "{40E0AC32-46A5-438A-A0B2-2B479E8F2E90}";
/// The default port for runs on several machines.
const DEFAULT_PORT: u16 = 29500;

pub(super) static CHECK: Check = Check {
    question: "Can other machines reach WSL on this PC?",
    reports: &["wsl.nat", "wsl.firewall", "wsl.port-of-windows", "wsl.own-name"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if !intent.has_several_nodes() || host.wsl()?.is_none() || host.is_container() {
        return Ok(Vec::new());
    }
    let mode = host.wsl_network();
    let address = own_address(host);
    let mirrored = mode.as_deref() == Ok("mirrored");
    let mut findings = Vec::new();
    // Behind NAT, WSL has a private address; it is the only sign if the file cannot be read.
    let hidden = match &mode {
        Ok(mode) if mode == "mirrored" || mode == "bridged" => false,
        Ok(_) => true,
        Err(why) => match &address {
            Some(address) => is_of_nat(address),
            None => return Err(why.clone()),
        },
    };
    if hidden {
        findings.push(nat(host, intent, address.as_deref()));
    } else if mirrored {
        findings.extend(firewall(host, intent));
        findings.extend(port(host, intent));
    }
    findings.extend(own_name(host));
    Ok(findings)
}

fn own_address(host: &Host) -> Option<String> {
    let interfaces = host.interfaces().ok()?;
    let eth = interfaces.iter().find(|one| one.name.starts_with("eth"))?;
    let address = eth.addresses.iter().find(|address| address.contains('.'))?;
    Some(address.split('/').next()?.to_owned())
}

/// WSL uses addresses in 172.16.0.0/12.
fn is_of_nat(address: &str) -> bool {
    let mut parts = address.split('.').map(|part| part.parse::<u8>().unwrap_or(0));
    parts.next() == Some(172) && parts.next().is_some_and(|part| (16..32).contains(&part))
}

fn nat(host: &Host, intent: &Intent, address: Option<&str>) -> Finding {
    let at = address.map_or(String::new(), |address| format!(" ({address})"));
    let title = format!("other machines cannot reach WSL on this PC: it is behind NAT{at}");
    let finding = Finding::new("wsl.nat", title);
    match host.windows_build() {
        Ok(build) if build < MIRRORED_NEEDS_BUILD => finding.remedy(format!(
            "run this rank on Windows 11 22H2 or later, or on Linux: mirrored networking needs build \
             {MIRRORED_NEEDS_BUILD}, but this is build {build}"
        )),
        _ => {
            let finding = match host.wslconfig() {
                Ok(config) => finding.command(super::edit(host, &config)),
                Err(_) => finding,
            };
            finding.command(super::SHUTDOWN).command(open_firewall(intent))
        }
    }
}

fn firewall(host: &Host, intent: &Intent) -> Option<Finding> {
    let script = format!(
        "(Get-NetFirewallHyperVVMSetting -PolicyStore ActiveStore -Name '{CREATOR}').DefaultInboundAction"
    );
    let words = ["powershell.exe", "-NoProfile", "-NonInteractive", "-Command", script.as_str()];
    let asked = host.windows_command(&words).ok().flatten().map(|output| output.text());
    let answer = asked.or_else(|| host.recorded_texts("NetFirewallHyperVVMSetting").into_iter().next())?;
    // The names of these values are not translated; `NotConfigured` means block.
    let blocks = answer.contains("Block") || answer.contains("NotConfigured");
    if !blocks {
        return None;
    }
    let title = "the Hyper-V firewall of Windows blocks connections from other machines to WSL";
    let seen = format!("DefaultInboundAction {}", answer.trim());
    Some(Finding::new("wsl.firewall", title).seen(seen).command(open_firewall(intent)))
}

/// The PowerShell command that lets other machines reach the ranks.
fn open_firewall(intent: &Intent) -> String {
    let port = intent.master_port.unwrap_or(DEFAULT_PORT);
    format!(
        "New-NetFirewallHyperVRule -Name yolo -DisplayName \"yolo ranks\" -Direction Inbound -VMCreatorId '{CREATOR}' \
         -Protocol TCP -LocalPorts {port},32768-60999"
    )
}

/// A port that no Linux program uses but that cannot be bound: a Windows program uses it.
fn port(host: &Host, intent: &Intent) -> Option<Finding> {
    if intent.node_rank.unwrap_or(0) != 0 {
        return None;
    }
    let port = intent.master_port.unwrap_or(DEFAULT_PORT);
    let refused = host.can_listen(&format!("0.0.0.0:{port}")).ok()?.is_err();
    let listeners = host.listening().ok()?;
    if !refused || listeners.iter().any(|listener| listener.port == port) {
        return None;
    }
    let other = elsewhere(intent, port.saturating_add(1));
    let title =
        format!("port {port} is in use by a Windows program; a mirrored WSL shares its ports with Windows");
    Some(
        Finding::new("wsl.port-of-windows", title)
            .command(format!("netstat.exe -ano | grep :{port}"))
            .remedy(format!("stop that program in Windows, or use another port{other}")),
    )
}

/// WSL writes /etc/hosts so that this machine's host name resolves to itself.
fn own_name(host: &Host) -> Option<Finding> {
    let name = host.hostname().ok()?;
    let addresses = host.addresses(&name).ok()?;
    if addresses.is_empty() || !addresses.iter().all(std::net::IpAddr::is_loopback) {
        return None;
    }
    let title = format!(
        "WSL's /etc/hosts resolves this machine's host name to {}, which other machines cannot reach",
        addresses[0]
    );
    Some(Finding::new("wsl.own-name", title))
}

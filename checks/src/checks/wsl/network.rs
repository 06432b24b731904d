//! Whether WSL has a network for the downloads of the first run: a route, a name server and the
//! proxy that Windows uses. Slow questions are only asked if something still needs to be downloaded.

use yolo_base::env::{ALL_PROXY, HTTPS_PROXY, all_proxy, https_proxy};

use crate::checks::network::proxy::{deaf, port_here};
use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

/// Where the first run downloads libtorch from.
const DOWNLOADS: &str = "download.pytorch.org";
/// The name server of WSL's DNS tunnel (Microsoft, "Advanced settings configuration in WSL").
const TUNNEL: &str = "10.255.255.254";
/// The first Windows with that tunnel: Windows 11 22H2.
const TUNNEL_BUILD: u32 = 22621;
const INTERNET_SETTINGS: &str = r"HKCU\Software\Microsoft\Windows\CurrentVersion\Internet Settings";
const IPV6: &str = r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip6\Parameters\DisabledComponents";
/// The service of Microsoft's Global Secure Access client.
const SECURE_ACCESS: &str = "GlobalSecureAccessTunnelingService";

pub(super) static CHECK: Check = Check {
    question: "Does WSL have a working network?",
    reports: &["wsl.no-route", "wsl.dns", "wsl.secure-access", "wsl.proxy", "wsl.ipv6-disabled"],
    preflight: false,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    if !super::is_wsl_itself(host)? {
        return Ok(Vec::new());
    }
    let fetches = host.is_recorded() || host.places().is_ok_and(|places| places.libtorch.is_none());
    let mut findings = Vec::new();
    if has_route(host) == Some(false) {
        findings.push(no_route(host));
    } else {
        findings.extend(dns(host, fetches));
    }
    findings.extend(secure_access(host));
    if fetches {
        findings.extend(proxy(host));
    } else {
        findings.extend(proxy_in_vain(host));
    }
    if !findings.is_empty() || host.is_recorded() {
        findings.extend(ipv6(host));
    }
    Ok(findings)
}

/// Whether there is a default route, or an address at all.
fn has_route(host: &Host) -> Option<bool> {
    if let Ok(Some(table)) = host.text("/proc/net/route") {
        let is_default = |line: &str| line.split_whitespace().nth(1) == Some("00000000");
        return Some(table.lines().skip(1).any(is_default));
    }
    let interfaces = host.interfaces().ok()?;
    let outside = |name: &str| !(name == "lo" || name.starts_with("docker") || name.starts_with("br-"));
    Some(
        interfaces.iter().any(|one| {
            outside(&one.name) && one.addresses.iter().any(|address| !address.starts_with("fe80"))
        }),
    )
}

fn no_route(host: &Host) -> Finding {
    let mode = host.wsl_network().unwrap_or_else(|_| "nat".to_owned());
    let finding = Finding::new("wsl.no-route", "WSL has no network connection: there is no default route")
        .seen(format!("networkingMode {mode}"));
    let finding = match mode.as_str() {
        "nat" => return finding.command(super::SHUTDOWN),
        "none" => finding.remedy("remove `networkingMode=none` from .wslconfig, then shut WSL down from Windows"),
        // Whatever the present setting is, another one may work: NAT requires the least of Windows.
        mode => finding
            .because(format!(
                "with networkingMode={mode}, WSL takes its network from Windows' own adapters, and none was passed on: a VPN, a \
                 virtual adapter, a firewall or an old Windows prevents that"
            ))
            .remedy(format!(
                "shut WSL down from Windows and start it again; if that does not help, write `networkingMode=nat` in \
                 .wslconfig instead of `networkingMode={mode}` (or remove the line), and shut WSL down once more"
            )),
    };
    let finding = match host.wslconfig() {
        Ok(config) => finding.command(super::edit(host, &config)),
        Err(_) => finding,
    };
    finding.command(super::SHUTDOWN)
}

fn dns(host: &Host, fetches: bool) -> Option<Finding> {
    let path = "/etc/resolv.conf";
    let text = host.text(path).ok();
    let servers: Option<Vec<String>> = text.as_ref().map(|text| {
        let lines = text.as_deref().unwrap_or_default().lines();
        lines.filter_map(|line| Some(line.trim().strip_prefix("nameserver")?.trim().to_owned())).collect()
    });
    let unheard = fetches && host.addresses(DOWNLOADS).is_ok_and(|found| found.is_empty());
    let title = match (&text, &servers) {
        (Some(None), _) => format!("{path} does not exist, so host names cannot be resolved"),
        (_, Some(servers)) if servers.is_empty() => format!("{path} lists no name server"),
        (_, servers) if unheard => {
            let whom = servers.as_ref().and_then(|servers| servers.first());
            let whom = whom.map_or(String::new(), |server| format!(" through name server {server}"));
            format!("{DOWNLOADS} cannot be resolved{whom}")
        }
        _ => return None,
    };
    let finding = Finding::new("wsl.dns", title);
    if host.wsl_conf_flag("network", "generateResolvConf") == Some(false) {
        return Some(
            finding
                .because("`generateResolvConf=false` in /etc/wsl.conf prevents WSL from writing that file")
                .remedy(
                    "remove that line from /etc/wsl.conf, delete the file or link, then shut WSL down from Windows, which \
                     writes it \
                     again",
                )
                .command("sudo sed -i '/generateResolvConf/Id' /etc/wsl.conf")
                .command(format!("sudo rm -f {path}"))
                .command(super::SHUTDOWN),
        );
    }
    // WSL writes this address if it already forwards queries to Windows.
    let is_tunnel = servers.is_some_and(|servers| servers.iter().any(|server| server == TUNNEL));
    let finding = if is_tunnel {
        finding
            .remedy(
                "check whether Windows resolves the name; if it does, set `dnsTunneling=false` under \
                 [wsl2] in .wslconfig, then shut WSL down from Windows; if not, Windows' own network or \
                 VPN is the cause",
            )
            .command(format!("nslookup.exe {DOWNLOADS}"))
    } else {
        finding
    };
    if host.windows_build().is_ok_and(|build| build < TUNNEL_BUILD) && !is_tunnel {
        return Some(own_server(host, finding, path));
    }
    let finding = match host.wslconfig() {
        Ok(config) => finding.command(super::edit(host, &config)),
        Err(_) => finding,
    };
    Some(finding.command(super::SHUTDOWN))
}

/// Windows 10, and Windows 11 before 22H2, have no DNS tunnel: WSL asks Windows by way of its virtual adapter, which a
/// firewall or VPN may block.
fn own_server(host: &Host, finding: Finding, path: &str) -> Finding {
    finding
        .because(
            "WSL asks Windows for names by way of the adapter `vEthernet (WSL)`, which a firewall (of Windows, ESET, Symantec) or a VPN \
             blocks; this Windows does not support DNS tunneling (`dnsTunneling`), which needs Windows 11 22H2",
        )
        .remedy(
            "name a DNS server yourself with the commands; in a company, replace 1.1.1.1 by its own server \
             (`Get-DnsClientServerAddress` in PowerShell shows it); or let the firewall accept WSL, in PowerShell as \
             administrator: `New-NetFirewallRule -DisplayName WSL \
             -Direction Inbound -InterfaceAlias 'vEthernet (WSL)' -Action Allow`; with a VPN, \
             `networkingMode=virtioproxy` under [wsl2] in .wslconfig (WSL 2.3 or later) goes through it",
        )
        .command(without_resolv_conf(host))
        .command(format!("sudo rm {path}"))
        .command(format!("echo nameserver 1.1.1.1 | sudo tee {path}"))
        .command(super::SHUTDOWN)
}

/// Whether Microsoft's Global Secure Access client is running; its folder is checked first.
fn secure_access(host: &Host) -> Option<Finding> {
    let folder = format!("{}/Program Files/Global Secure Access Client", host.windows_drive());
    if host.exists(&folder) == Ok(false) || !host.is_recorded() && host.exists(&folder).is_err() {
        return None;
    }
    let answer = host.windows_command(&["sc.exe", "query", SECURE_ACCESS]).ok()??.text();
    // `STATE : 4 RUNNING`: the number is the same in every language.
    let runs = answer
        .lines()
        .any(|line| line.split_once(':').is_some_and(|(_, value)| value.trim_start().starts_with("4 ")));
    runs.then(|| {
        Finding::new(
            "wsl.secure-access",
            "the Global Secure Access client of Windows intercepts name resolution",
        )
    })
}

/// A proxy of Windows at 127.0.0.1, which behind NAT is WSL itself.
fn proxy_of_windows(host: &Host, name: Option<&str>, value: &str) -> Finding {
    let title = match name {
        Some(name) => format!(
            "{name} is {value}, but in WSL's NAT network that address is WSL itself, where no program listens"
        ),
        None => format!("Windows uses a proxy at {value}, which WSL's NAT network does not reach"),
    };
    let gateway = gateway(host).unwrap_or_else(|| "Windows' address (`ip route show default`)".to_owned());
    let finding = Finding::new("wsl.proxy", title)
        .because(
            "127.0.0.1 in WSL is not 127.0.0.1 of Windows unless the network is mirrored, so downloads are refused; WSL \
             says that a localhost proxy was detected but not mirrored into WSL",
        )
        .remedy(format!(
            "set `networkingMode=mirrored` under [wsl2] in .wslconfig (Windows 11 22H2 or later) and shut WSL down from \
             Windows; or let the proxy accept connections from the LAN and use {gateway} instead of 127.0.0.1; or unset \
             the variable if no proxy is needed"
        ));
    let finding = match host.wslconfig() {
        Ok(config) => finding.command(super::edit(host, &config)),
        Err(_) => finding,
    };
    finding.command(super::SHUTDOWN)
}

/// The address of Windows behind NAT: that of the default route, which also serves names there.
fn gateway(host: &Host) -> Option<String> {
    let table = host.text("/proc/net/route").ok().flatten().unwrap_or_default();
    let of_route = table.lines().skip(1).find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        (words.next() == Some("00000000")).then_some(())?;
        let number = u32::from_str_radix(words.next()?, 16).ok()?;
        Some(std::net::Ipv4Addr::from(number.swap_bytes()).to_string())
    });
    of_route.or_else(|| {
        let text = host.text("/etc/resolv.conf").ok().flatten()?;
        let server = text.lines().find_map(|line| line.trim().strip_prefix("nameserver"))?.trim().to_owned();
        (server != TUNNEL && !server.starts_with("127.")).then_some(server)
    })
}

fn is_nat(host: &Host) -> bool {
    host.wsl_network().is_ok_and(|mode| mode == "nat")
}

/// A proxy of this shell at 127.0.0.1 that breaks every later download, even if all is installed.
fn proxy_in_vain(host: &Host) -> Option<Finding> {
    let deaf = deaf(host).filter(|_| is_nat(host))?;
    Some(proxy_of_windows(host, Some(deaf.name), &deaf.value))
}

fn proxy(host: &Host) -> Option<Finding> {
    let is_nat = is_nat(host);
    if let Some(finding) = proxy_in_vain(host) {
        return Some(finding);
    }
    let names = [HTTPS_PROXY, https_proxy, ALL_PROXY, all_proxy];
    if names.iter().any(|name| host.env(name).is_ok_and(|value| value.is_some())) {
        return None;
    }
    if let Ok(Some(script)) = host.env("WSL_PAC_URL") {
        let title = format!("Windows selects its proxy with a script, which WSL does not run: {script}");
        return Some(Finding::new("wsl.proxy", title));
    }
    let enabled = host.windows_registry(&format!("{INTERNET_SETTINGS}\\ProxyEnable")).ok()??;
    if enabled != "1" {
        return None;
    }
    let server = host.windows_registry(&format!("{INTERNET_SETTINGS}\\ProxyServer")).ok().flatten();
    let server = server.filter(|server| !server.trim().is_empty());
    // `http=127.0.0.1:8888;https=127.0.0.1:8888` names one for each protocol.
    let is_here = |server: &String| {
        let mut parts =
            server.split(';').map(|part| part.split_once('=').map_or(part, |(_, address)| address));
        parts.any(|address| port_here(address).is_some())
    };
    if let Some(server) = server.as_ref().filter(|server| is_nat && is_here(server)) {
        return Some(proxy_of_windows(host, None, server));
    }
    let which = server.as_ref().map_or(String::new(), |server| format!(", {server}"));
    let finding = Finding::new("wsl.proxy", format!("Windows uses a proxy{which}, but this shell has none"));
    Some(match server.filter(|server| !server.contains([';', '='])) {
        Some(server) => {
            let address = if server.contains("://") { server } else { format!("http://{server}") };
            finding
                .command(format!("export HTTPS_PROXY={address}"))
                .command("export NO_PROXY=localhost,127.0.0.1")
        }
        None => finding,
    })
}

fn ipv6(host: &Host) -> Option<Finding> {
    let value = host.windows_registry(IPV6).ok()??;
    if value == "0" {
        return None;
    }
    let title = format!("IPv6 is disabled in the Windows registry (DisabledComponents is {value})");
    Some(Finding::new("wsl.ipv6-disabled", title).status(Status::Warning))
}
/// The setting with which WSL writes no resolv.conf.
fn without_resolv_conf(host: &Host) -> String {
    super::wsl_conf::set(host, "network", "generateResolvConf", "false")
}

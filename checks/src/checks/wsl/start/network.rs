//! The network of WSL's virtual machine, which Windows cannot set up.

use crate::checks::wsl::{SHUTDOWN, edit};
use crate::facts::Host;
use crate::finding::Finding;
use crate::status::Status;

/// The network of the virtual machine. WSL falls back to another mode, of which only `None` is no network.
pub(super) fn finding(host: &Host, text: &str, code: &str) -> Finding {
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
    let is_launcher = code.starts_with("0x");
    let falls_back = instead.is_some()
        || lower.contains("falling back")
        || !is_switch && !is_launcher && !code.to_ascii_lowercase().starts_with("wsl/");
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
        _ => nat(host, finding, code),
    }
}

/// Where a policy forbids new devices, such as the adapter of WSL's network; 1 is on.
const RESTRICTIONS: &str = r"HKLM\SOFTWARE\Policies\Microsoft\Windows\DeviceInstall\Restrictions";
const DENIALS: [&str; 2] = ["DenyUnspecified", "DenyDeviceClasses"];

/// NAT needs the Host Network Service, and with it Internet Connection Sharing.
fn nat(host: &Host, finding: Finding, code: &str) -> Finding {
    let code = code.to_ascii_lowercase();
    let restart =
        |finding: Finding| finding.command("net.exe stop hns").command("net.exe start hns").command(SHUTDOWN);
    if code.ends_with("0xffffffff") {
        return port_taken(host, finding);
    }
    // WBEM's "not found": the adapter that Windows should have made does not exist.
    if !code.ends_with("0x80041002") {
        return restart(finding);
    }
    let is_set = |name: &&&str| {
        let value = host.registry(&format!(r"{RESTRICTIONS}\{name}")).ok().flatten();
        value.is_some_and(|value| matches!(value.trim(), "1" | "0x1"))
    };
    match DENIALS.iter().find(is_set) {
        Some(name) => finding
            .seen(format!(r"{RESTRICTIONS}\{name} is 1"))
            .because("a policy forbids the installation of new devices, so Windows cannot create the network adapter of WSL")
            .remedy(
                "let the administrator of this PC allow it (gpedit.msc, Computer Configuration, Administrative Templates, System, \
                 Device Installation, Device Installation Restrictions), then restart Windows; until then write \
                 `networkingMode=virtioproxy`, or on Windows 11 `networkingMode=mirrored`, under [wsl2] in .wslconfig",
            )
            .command("gpupdate.exe /force")
            .command(SHUTDOWN),
        None => restart(finding.because(
            "Windows cannot create the network adapter of WSL: the Host Network Service (HNS) fails, often after an update, or \
             because of a VPN, VMware's bridge, Npcap or the firewall of another program (such as Comodo)",
        ).remedy(
            "restart the Host Network Service in a Windows terminal as administrator, then Windows; remove VMware's bridge, Npcap \
             and Comodo's firewall from the network adapters (ncpa.cpl, Properties of each adapter, clear their boxes), and end \
             VPN programs; to start WSL without NAT meanwhile, write \
             `networkingMode=virtioproxy` or `networkingMode=none` under [wsl2] in .wslconfig",
        )),
    }
}

/// Internet Connection Sharing answers names at port 53, where a DNS server of the user is already.
fn port_taken(host: &Host, finding: Finding) -> Finding {
    const DNS: u16 = 53;
    let is_other = |name: &String| !name.to_ascii_lowercase().starts_with("svchost");
    let owner = host.listening().ok().and_then(|all| {
        all.into_iter().filter(|one| one.port == DNS).filter_map(|one| one.process).find(is_other)
    });
    let stop = match &owner {
        Some(owner) => format!("stop {owner}"),
        None => "find the program (the command shows it), stop it".to_owned(),
    };
    let finding = match &owner {
        Some(owner) => finding.seen(format!("{owner} answers at port {DNS} of Windows")),
        None => finding,
    };
    finding
        .because(
            "another Windows program is listening on port 53, usually a DNS server or filter (AdGuard Home, Pi-hole, \
             Technitium, Acrylic, \
             dnscrypt-proxy, unbound); Internet Connection Sharing needs that port for WSL's network",
        )
        .remedy(format!(
            "{stop}, start WSL, and start the program again; to solve it permanently, let it listen at one \
             address of the PC instead of 0.0.0.0, or write `networkingMode=virtioproxy`, or on Windows 11 `networkingMode=mirrored`, \
             under [wsl2] in .wslconfig; if no other program has port 53, restart the Host Network Service (`net stop hns`, \
             `net start hns`) and Windows"
        ))
        .command("powershell.exe -Command \"Get-Process -Id (Get-NetUDPEndpoint -LocalPort 53).OwningProcess\"")
        .command(SHUTDOWN)
}

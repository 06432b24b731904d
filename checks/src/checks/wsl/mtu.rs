//! Whether a VPN passes on smaller packets than are sent into it: names are resolved and small answers arrive, and then
//! downloads hang, usually while TLS is set up. The VPN may be one of Windows, or one in WSL.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Does the network of Windows take packets of WSL's size?",
    reports: &["wsl.mtu"],
    preflight: false,
    run,
};

/// WSL's own interface.
const INTERFACE: &str = "eth0";
/// The sizes of packets that VPNs have; below, it is no network for downloads.
const OF_VPN: std::ops::Range<u32> = 1200..1500;
/// Bytes that a network in use has received.
const USED: u64 = 1 << 20;

/// The bytes that a VPN adds to each packet: 60 with IPv4, 80 with IPv6.
const ADDED: u32 = 60;
/// Interfaces of VPNs that may run in WSL: Tailscale, WireGuard.
const TUNNELS: [&str; 2] = ["tailscale", "wg"];

fn run(host: &Host, intent: &Intent) -> Answer {
    if !super::is_wsl_itself(host)? {
        return Ok(Vec::new());
    }
    if let Some(finding) = nested(host, intent) {
        return Ok(vec![finding]);
    }
    if host.wsl_network().is_ok_and(|mode| mode != "nat") {
        return Ok(Vec::new());
    }
    // A live PC is not asked: most VPNs tell WSL to send smaller packets, and nothing points to one that does not.
    let said = host.recorded_texts("subinterfaces");
    let Some((mtu, name)) = said.iter().flat_map(|text| text.lines()).find_map(vpn) else {
        return Ok(Vec::new());
    };
    let Some(own) = mtu_of(host, INTERFACE).filter(|own| *own > mtu) else { return Ok(Vec::new()) };
    let title = format!("WSL sends packets of {own} bytes, but Windows' interface {name} takes {mtu}");
    let command = format!("ip link set dev {INTERFACE} mtu {mtu}");
    let finding = Finding::new("wsl.mtu", title).remedy(format!(
        "if downloads hang in WSL and not in Windows, let WSL send smaller packets; to keep that, write `command={command}` under \
         [boot] in /etc/wsl.conf, or networkingMode=mirrored under [wsl2] in .wslconfig (Windows 11 22H2 or later)"
    ));
    Ok(vec![finding.command(format!("sudo {command}"))])
}

/// The largest packet of an interface.
fn mtu_of(host: &Host, interface: &str) -> Option<u32> {
    host.text(&format!("/sys/class/net/{interface}/mtu")).ok()??.trim().parse().ok()
}

/// A VPN inside WSL whose packets do not fit into those of the interface that carries them. A VPN of Windows makes that
/// one small, so that both add their headers (tailscale/tailscale#4833).
fn nested(host: &Host, intent: &Intent) -> Option<Finding> {
    let interfaces = host.interfaces().ok()?;
    let is_tunnel = |name: &str| TUNNELS.iter().any(|start| name.starts_with(start));
    let tunnel = interfaces.iter().map(|one| one.name.as_str()).find(|name| is_tunnel(name))?;
    let routes = host.text("/proc/net/route").ok()??;
    let outer = routes.lines().find_map(default_route).filter(|name| !is_tunnel(name))?;
    let (inner, room) = (mtu_of(host, tunnel)?, mtu_of(host, outer)?);
    if inner.saturating_add(ADDED) <= room {
        return None;
    }
    let title = format!(
        "the VPN {tunnel} sends packets of {inner} bytes through {outer}, which carries at most {room} bytes including \
         the VPN's headers"
    );
    let command = format!("ip link set dev {outer} mtu 1500");
    let finding = Finding::new("wsl.mtu", title)
        .because(
            "a VPN runs in WSL, and one in Windows made WSL's own interface small; names and ping work, and larger packets (TLS, SSH, \
             the ranks of other machines) are lost",
        )
        .remedy(format!(
            "best use the VPN in Windows only, and stop the one in WSL; to keep it, make WSL's interface larger, for good with \
             `command={command}` under [boot] in /etc/wsl.conf"
        ))
        .command(format!("sudo {command}"));
    Some(if intent.has_several_nodes() { finding.status(Status::Warning) } else { finding })
}

/// The interface of a line of /proc/net/route that leads to all other networks.
fn default_route(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let name = words.next()?;
    (words.next()? == "00000000").then_some(name)
}

/// An interface that takes small packets and is in use: `  1350   1   48273641   5827364  Ethernet 4`.
fn vpn(line: &str) -> Option<(u32, String)> {
    let mut words = line.split_whitespace();
    let mtu = words.next()?.parse().ok().filter(|mtu| OF_VPN.contains(mtu))?;
    let _state: u64 = words.next()?.parse().ok()?;
    let received: u64 = words.next()?.parse().ok().filter(|bytes| *bytes >= USED)?;
    let _sent: u64 = words.next()?.parse().ok().filter(|_| received > 0)?;
    let name = words.collect::<Vec<_>>().join(" ");
    // Tailscale's packets are small on purpose, and only its own go there; so are those of virtual machines.
    let is_other =
        ["Tailscale", "ZeroTier", "vEthernet", "Loopback"].iter().any(|other| name.contains(other));
    (!is_other && !name.is_empty()).then_some((mtu, name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{default_route, vpn};

    #[test]
    fn only_networks_in_use_count() {
        assert_eq!(
            vpn("  1350                1   48273641    5827364  Ethernet 4"),
            Some((1350, "Ethernet 4".to_owned()))
        );
        for line in [
            "   MTU  MediaSenseState   Bytes In  Bytes Out  Interface",
            "  1280                1   48273641    5827364  Tailscale",
            "  1350                5          0          0  Ethernet 4",
            "  1500                1   48273641    5827364  Wi-Fi",
            "4294967295            1          0     221834  Loopback Pseudo-Interface 1",
        ] {
            assert_eq!(vpn(line), None, "{line}");
        }
    }

    #[test]
    fn the_way_out_is_found() {
        assert_eq!(default_route("eth0\t00000000\t01001DAC\t0003"), Some("eth0"));
        assert_eq!(default_route("eth0\t00001DAC\t00000000\t0001"), None);
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "[ 0-9A-Za-z]{0,60}") {
            let _ = (vpn(&line), default_route(&line));
        }
    }
}

//! Whether a VPN of Windows passes on smaller packets than WSL sends: names are resolved and small answers arrive, and then
//! downloads hang, usually while TLS is set up.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

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

fn run(host: &Host, _: &Intent) -> Answer {
    if !super::is_wsl_itself(host)? || host.wsl_network().is_ok_and(|mode| mode != "nat") {
        return Ok(Vec::new());
    }
    // A live PC is not asked: most VPNs tell WSL to send smaller packets, and nothing points to one that does not.
    let said = host.recorded_texts("subinterfaces");
    let Some((mtu, name)) = said.iter().flat_map(|text| text.lines()).find_map(vpn) else {
        return Ok(Vec::new());
    };
    let own =
        host.text(&format!("/sys/class/net/{INTERFACE}/mtu"))?.and_then(|text| text.trim().parse().ok());
    let Some(own) = own.filter(|own: &u32| *own > mtu) else { return Ok(Vec::new()) };
    let title = format!("WSL sends packets of {own} bytes, but Windows' interface {name} takes {mtu}");
    let command = format!("ip link set dev {INTERFACE} mtu {mtu}");
    let finding = Finding::new("wsl.mtu", title).remedy(format!(
        "if downloads hang in WSL and not in Windows, let WSL send smaller packets; to keep that, write `command={command}` under \
         [boot] in /etc/wsl.conf, or networkingMode=mirrored under [wsl2] in .wslconfig (Windows 11 22H2 or later)"
    ));
    Ok(vec![finding.command(format!("sudo {command}"))])
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

    use super::vpn;

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

    proptest! {
        #[test]
        fn any_line_is_read(line in "[ 0-9A-Za-z]{0,60}") {
            let _ = vpn(&line);
        }
    }
}

//! Network and ports.

mod firewall;
mod hostname;
mod interfaces;
pub(in crate::checks) mod port;

use super::Check;

pub(super) const CHECKS: &[&Check] = &[&port::CHECK, &hostname::CHECK, &interfaces::CHECK, &firewall::CHECK];

/// Name prefixes of bridges, tunnels and container interfaces, which lead to no other machine.
const VIRTUAL: [&str; 18] = [
    "docker",
    "br-",
    "veth",
    "virbr",
    "tailscale",
    "wg",
    "tun",
    "tap",
    "cni",
    "flannel",
    "cali",
    "zt",
    "vmnet",
    "lxc",
    "podman",
    "vnet",
    "kube",
    "dummy",
];

/// Whether an interface can lead to other machines, by its name.
fn leads_out(interface: &str) -> bool {
    interface != "lo" && !VIRTUAL.iter().any(|begin| interface.starts_with(begin))
}

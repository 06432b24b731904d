//! What the name of a network interface says about it.

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
pub(crate) fn leads_out(interface: &str) -> bool {
    interface != "lo" && !VIRTUAL.iter().any(|begin| interface.starts_with(begin))
}

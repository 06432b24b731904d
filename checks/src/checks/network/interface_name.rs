//! What the name of a network interface and its addresses say about it.

use std::net::IpAddr;

use crate::facts::Interface;

/// Name prefixes of bridges, tunnels and container interfaces, which lead to no other machine.
const VIRTUAL: [&str; 57] = [
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
    // Containers and virtual machines.
    "lxdbr",
    "incusbr",
    "mpqemubr",
    "vboxnet",
    "nerdctl",
    "cilium",
    "antrea",
    "weave",
    "nodelocaldns",
    "ovs-system",
    "ovn-k8s",
    "ovn0",
    "ifb",
    "genev_sys",
    "vxlan",
    // Tunnels of the kernel, which exist once their module is loaded.
    "ip6tnl",
    "tunl",
    "sit",
    "gre",
    "erspan",
    "ip_vti",
    // Private networks over the Internet.
    "nebula",
    "gpd",
    "cscotun",
    "nordlynx",
    "proton",
    "CloudflareWARP",
    "ham0",
    "uncloud",
    "ppp",
    "ipsec",
    "vpn",
    "fctvpn",
    "pvpn",
    "ipv6leak",
    "wt0",
    "Meta",
    "Mihomo",
    // The agent of a cloud on its node, such as Amazon's EKS Pod Identity.
    "pod-id-link",
];

/// Whether an interface can lead to other machines, by its name.
pub(crate) fn leads_out(interface: &str) -> bool {
    interface != "lo" && !VIRTUAL.iter().any(|begin| interface.starts_with(begin))
}

/// Whether an interface can lead to other machines, by its name and addresses. One of USB with link-local addresses alone
/// leads to the management controller in the machine's case, and any port with a cable has one of IPv6 without being set
/// up. One of IPv4 is what two machines have that share a cable.
pub(crate) fn reaches_others(interface: &Interface) -> bool {
    // An address without a network is that of an agent on this machine.
    let of_ipv4 =
        |text: &String| address(text).is_some_and(|address| address.is_ipv4()) && !text.ends_with("/32");
    let is_set_up =
        !is_link_local(interface) || !is_of_usb(&interface.name) && interface.addresses.iter().any(of_ipv4);
    leads_out(&interface.name) && is_set_up
}

/// `10.0.0.7/24`
fn address(text: &str) -> Option<IpAddr> {
    text.split('/').next()?.parse().ok()
}

/// Whether an interface has link-local addresses alone. They work over a cable between two machines, as NVIDIA's guide
/// for DGX Spark sets it up, but an interface with more is the better guess.
pub(super) fn is_link_local(interface: &Interface) -> bool {
    let is_local = |text: &String| match address(text) {
        Some(IpAddr::V4(address)) => address.is_link_local(),
        Some(IpAddr::V6(address)) => address.segments()[0] & 0xffc0 == 0xfe80,
        None => false,
    };
    !interface.addresses.is_empty() && interface.addresses.iter().all(is_local)
}

/// Names of network adapters on USB: `usb0`, `enx0a1b2c3d4e5f`, `enp0s20f0u8u3c2`.
fn is_of_usb(name: &str) -> bool {
    let of_port = |name: &str| {
        name.starts_with("en")
            && name.split('u').skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    ["usb", "enx", "cdc", "bmc", "idrac"].iter().any(|begin| name.starts_with(begin)) || of_port(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reaches(name: &str, addresses: &[&str]) -> bool {
        let addresses = addresses.iter().map(|address| (*address).to_owned()).collect();
        reaches_others(&Interface { name: name.to_owned(), up: Some(true), addresses })
    }

    #[test]
    fn names_and_link_local_addresses_tell_what_leads_nowhere() {
        for name in ["eno1.100", "br0", "vmbr0", "bond0", "ib0", "enP2p1s0", "wlp3s0"] {
            assert!(reaches(name, &["10.0.0.7/24", "fe80::1/64"]), "{name}");
        }
        for name in
            ["lxdbr0", "cscotun0", "cilium_host", "ip6tnl0", "CloudflareWARP", "ppp0", "wt0", "Mihomo"]
        {
            assert!(!reaches(name, &["10.0.0.7/24"]), "{name}");
        }
        assert!(!reaches("enx0a1b2c3d4e5f", &["169.254.3.1/24", "fe80::1/64"]));
        assert!(!reaches("enp0s20f0u8u3c2", &["169.254.95.118/24"]));
        assert!(!reaches("usb0", &["fe80::1/64"]));
        assert!(!reaches("pod-id-link0", &["169.254.170.23/32", "fd00:ec2::23/128"]));
        assert!(!reaches("eth2", &["169.254.169.2/32"]));
        assert!(reaches("ens4", &["10.128.0.2/32"]));
        assert!(reaches("enx0a1b2c3d4e5f", &["192.168.1.7/24"]));
        assert!(!reaches("eth1", &["fe80::1/64"]));
        // The link between two DGX Spark.
        assert!(reaches("enp1s0f0np0", &["169.254.3.1/16", "fe80::1/64"]));
        assert!(reaches("eth0", &[]));
    }
}

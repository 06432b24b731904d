//! Whether other machines can reach the ranks in this container. They cannot in Docker's internal
//! network, whose addresses mean nothing outside.

use std::net::Ipv4Addr;

use crate::checks::{Answer, Check};
use crate::facts::{Container, Host};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::start_container::{Start, start_with};

pub(super) static CHECK: Check = Check {
    question: "Can other machines reach this container?",
    reports: &["container.bridge-address"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if !intent.has_several_nodes() || host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let Some(Container::Docker | Container::Podman) = host.container()? else { return Ok(Vec::new()) };
    let mut bridged = None;
    let master = intent.master_addr.as_deref().and_then(|name| name.parse::<Ipv4Addr>().ok());
    for interface in
        host.interfaces()?.iter().filter(|interface| interface.up != Some(false) && interface.name != "lo")
    {
        for text in &interface.addresses {
            let Some(address) = parse(text) else { continue };
            let is_inner = match is_pair(host, &interface.name) {
                Some(is_pair) => is_pair || is_of_user(&interface.name, address),
                None => is_of_bridge(address) || is_of_user(&interface.name, address),
            };
            // A network over several machines, such as one of Docker Swarm, may have machine 0 too.
            let is_shared = !is_of_bridge(address) && master.is_some_and(|master| contains(text, master));
            if !is_inner || is_shared || interface.name.starts_with("docker") {
                // The host's network is visible here too.
                return Ok(Vec::new());
            }
            bridged = Some((interface.name.clone(), address));
        }
    }
    let Some((name, address)) = bridged else { return Ok(Vec::new()) };
    let title =
        format!("other machines cannot reach this container: its address {address} is internal to its host");
    let finding = Finding::new("container.bridge-address", title).seen(format!("{name} has {address}"));
    Ok(vec![start_with(host, finding, Start::HostNetwork)])
}

fn parse(address: &str) -> Option<Ipv4Addr> {
    address.split('/').next()?.parse().ok()
}

/// Whether an interface is one end of a pair, whose other end is in a bridge of the host; `None` if it is unknown.
/// Interfaces that Docker derives from the host's own (macvlan, ipvlan) name their kind.
fn is_pair(host: &Host, name: &str) -> Option<bool> {
    let file = |file: &str| host.text(&format!("/sys/class/net/{name}/{file}")).ok().flatten();
    if host.exists(&format!("/sys/class/net/{name}/device")) == Ok(true) {
        return Some(false);
    }
    let number = |text: String| text.trim().parse::<u32>().ok();
    let (own, other) = (number(file("ifindex")?)?, number(file("iflink")?)?);
    let has_kind = file("uevent").is_some_and(|text| text.contains("DEVTYPE="));
    Some(own != other && !has_kind)
}

/// The network of a Podman that its user started without root.
fn is_of_user(name: &str, address: Ipv4Addr) -> bool {
    name.starts_with("tap") && address.octets()[..3] == [10, 0, 2]
}

/// Whether an address such as `10.0.1.7/24` is in the network of another.
fn contains(with_length: &str, other: Ipv4Addr) -> bool {
    let Some((address, length)) = with_length.split_once('/') else { return false };
    let (Ok(address), Ok(length)) = (address.parse::<Ipv4Addr>(), length.parse::<u32>()) else {
        return false;
    };
    let mask = u32::MAX.checked_shl(32u32.saturating_sub(length)).unwrap_or(0);
    address.to_bits() & mask == other.to_bits() & mask
}

/// Docker uses networks from 172.17.0.0 to 172.31.255.255, Podman 10.88.0.0/16 and 10.89.0.0/16.
fn is_of_bridge(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    first == 172 && (17..32).contains(&second) || first == 10 && matches!(second, 88 | 89)
}

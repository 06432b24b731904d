//! Whether other machines can reach the ranks in this container. They cannot in Docker's internal
//! network, whose addresses mean nothing outside.

use std::net::Ipv4Addr;

use crate::checks::{Answer, Check, contains, master};
use crate::facts::{Container, Host};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::start_container::{Start, start_with};
use crate::status::Status;

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
    let named = intent.master_addr.as_deref();
    let master = named.and_then(|name| master(host, name).ok().flatten());
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
            let is_internal =
                is_of_bridge(address) || is_of_compose(text) || is_of_user(&interface.name, address);
            // The container of a Swarm is in a bridge too, beside the network that counts.
            if bridged.as_ref().is_none_or(|(_, _, known)| *known) {
                bridged = Some((interface.name.clone(), address, is_internal));
            }
        }
    }
    let Some((name, address, is_internal)) = bridged else { return Ok(Vec::new()) };
    let finding = if is_internal {
        let title = format!(
            "other machines cannot reach this container: its address {address} is internal to its host"
        );
        Finding::new("container.bridge-address", title)
    } else {
        // Flannel, Calico or a network of the administrator may route such an address between machines.
        let title = format!(
            "other machines can reach this container only if its network, with the address {address}, leads to them"
        );
        Finding::new("container.bridge-address", title)
            .status(Status::Info)
            .because("the address is of a network of this container's own, which may or may not be routed between machines")
    };
    let finding = finding.seen(format!("{name} has {address}"));
    let mut finding = start_with(host, finding, Start::HostNetwork);
    if let Some(remedy) = finding.remedy.as_mut().filter(|_| !is_internal) {
        remedy.text = format!("nothing, if the ranks connect; otherwise {}", remedy.text);
    }
    Ok(vec![finding])
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

/// A network that a compose file got from the second of Docker's pools, 192.168.0.0/16 in parts of this size.
fn is_of_compose(address: &str) -> bool {
    address.starts_with("192.168.") && address.ends_with("/20")
}

/// Docker uses networks from 172.17.0.0 to 172.31.255.255, Podman 10.88.0.0/16 and 10.89.0.0/16.
fn is_of_bridge(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    first == 172 && (17..32).contains(&second) || first == 10 && matches!(second, 88 | 89)
}

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
    for interface in
        host.interfaces()?.iter().filter(|interface| interface.up != Some(false) && interface.name != "lo")
    {
        for address in interface.addresses.iter().filter_map(|address| parse(address)) {
            if !is_of_bridge(address) || interface.name.starts_with("docker") {
                // The host's network is visible here too.
                return Ok(Vec::new());
            }
            bridged = Some((interface.name.clone(), address));
        }
    }
    let Some((name, address)) = bridged else { return Ok(Vec::new()) };
    let title =
        format!("other machines cannot reach this container: its address {address} is internal to Docker");
    let finding = Finding::new("container.bridge-address", title).seen(format!("{name} has {address}"));
    Ok(vec![start_with(host, finding, Start::HostNetwork)])
}

fn parse(address: &str) -> Option<Ipv4Addr> {
    address.split('/').next()?.parse().ok()
}

/// Docker uses networks from 172.17.0.0 to 172.31.255.255, Podman 10.88.0.0/16.
fn is_of_bridge(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    first == 172 && (17..32).contains(&second) || first == 10 && second == 88
}

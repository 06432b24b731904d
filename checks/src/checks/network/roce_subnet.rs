//! Whether two RoCE ports of this machine are in one subnet. Linux then answers on any of them for the addresses of all
//! (ARP), so that other machines send to the wrong port, and NCCL's connections between those ports fail.

use std::net::IpAddr;

use super::interfaces::contains;
use crate::checks::shell::infiniband::takes;
use crate::facts::{Host, InfinibandPort, Interface};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::nccl_files;

const HCA: &str = "NCCL_IB_HCA";

/// The finding about the first two such ports of those that NCCL uses.
pub(super) fn finding(host: &Host, intent: &Intent) -> Option<Finding> {
    let uses_nccl = !intent.cpu && intent.backend.as_deref() != Some("gloo");
    let set = |name: &str| nccl_files::setting(host, name).map(|setting| setting.value);
    let is_off = set("NCCL_IB_DISABLE").is_some_and(|value| value != "0")
        || set("NCCL_NET").is_some_and(|name| !name.eq_ignore_ascii_case("ib"));
    if !intent.has_several_nodes() || !uses_nccl || is_off {
        return None;
    }
    let list = set(HCA).unwrap_or_default();
    let mut ports = host.infiniband_ports();
    ports.retain(|port| {
        let is_used = list.is_empty() || takes(&list, port);
        port.is_active() == Some(true) && port.is_ethernet() && !port.is_efa(host) && is_used
    });
    let interfaces = host.interfaces().unwrap_or_default();
    let of_ports: Vec<(&InfinibandPort, &Interface)> =
        ports.iter().filter_map(|port| Some((port, interface_of(host, port, &interfaces)?))).collect();
    let pair = of_ports.iter().enumerate().find_map(|(place, first)| {
        let second = of_ports.get(place + 1..)?.iter().find(|second| are_alike(first.1, second.1))?;
        Some((first, second))
    });
    let (first, second) = pair?;
    let is_wrong = |name: &str| answers_for_others(host, name) && !is_filtered(host, name);
    let (one, other) = (&first.1.name, &second.1.name);
    if !is_wrong(one) || !is_wrong(other) || master(host, one) != master(host, other) {
        return None;
    }
    let title = format!(
        "the RoCE ports {} ({}) and {} ({}) are in the same subnet",
        first.0.adapter, first.1.name, second.0.adapter, second.1.name
    );
    let finding = Finding::new("network.one-subnet", title)
        .seen(format!("{}: {}", first.1.name, first.1.addresses.join(", ")))
        .seen(format!("{}: {}", second.1.name, second.1.addresses.join(", ")))
        .because(
            "Linux answers on any interface for the addresses of all (ARP), so other machines send to the wrong port; NCCL's \
             connections between RoCE ports then fail or time out",
        );
    Some(if host.is_own_machine() {
        finding
            .remedy(format!(
                "leave one of them out with {HCA}, on all machines; or move the ports to subnets of their own; or give each port a \
                 table of routes of its own (`ip rule`) and let each interface answer for its own address only, also in a file of \
                 /etc/sysctl.d",
            ))
            .command(format!("export {HCA}={}", without(host, &list, second.0)))
            .command("sudo sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2")
    } else {
        finding
            .remedy("let NCCL use one of the two, and ask the administrator to give each port a subnet of its own")
            .command(format!("export {HCA}={}", without(host, &list, second.0)))
    })
}

/// The value of NCCL_IB_HCA that leaves out this port too: all others, or those that the user's own list takes.
fn without(host: &Host, list: &str, port: &InfinibandPort) -> String {
    if list.is_empty() {
        return format!("^={}:{}", port.adapter, port.number);
    }
    let mut ports = host.infiniband_ports();
    ports.retain(|one| takes(list, one) && (&one.adapter, &one.number) != (&port.adapter, &port.number));
    let names: Vec<String> = ports.iter().map(|one| format!("{}:{}", one.adapter, one.number)).collect();
    format!("={}", names.join(","))
}

/// Whether an interface answers only for what is routed through it, as it is with a table of routes for each port.
fn is_filtered(host: &Host, name: &str) -> bool {
    ["all", name].iter().any(|name| {
        let file = host.text(&format!("/proc/sys/net/ipv4/conf/{name}/arp_filter")).ok().flatten();
        file.is_some_and(|text| text.trim() == "1")
    })
}

/// What an interface is a part of, such as a VRF with routes of its own.
fn master(host: &Host, name: &str) -> Option<String> {
    let link = host.link(&format!("/sys/class/net/{name}/master")).ok()??;
    Some(link.rsplit('/').next()?.to_owned())
}

/// The interface of a port, by the table of its addresses or the folder of its card.
fn interface_of<'a>(host: &Host, port: &InfinibandPort, all: &'a [Interface]) -> Option<&'a Interface> {
    let of_table = host.text(&format!("{}/gid_attrs/ndevs/0", port.folder())).ok().flatten();
    let of_card = || {
        let names = host.folder(&format!("/sys/class/infiniband/{}/device/net", port.adapter)).ok()??;
        // Those of virtual functions are listed with the card.
        if let [name] = &names[..] { Some(name.clone()) } else { None }
    };
    let of_rdma = || {
        let start = format!("link {}/{} ", port.adapter, port.number);
        let text = host.recorded_output("rdma")?;
        let line = text.lines().find(|line| line.trim_start().starts_with(&start))?;
        Some(line.split_once(" netdev ")?.1.split_whitespace().next()?.to_owned())
    };
    let name = of_table.map(|name| name.trim().to_owned()).or_else(of_card).or_else(of_rdma)?;
    all.iter().find(|one| one.name == name && one.up != Some(false))
}

/// Whether two interfaces have IPv4 addresses in one subnet.
fn are_alike(first: &Interface, second: &Interface) -> bool {
    let address = |text: &String| text.split('/').next()?.parse::<IpAddr>().ok().filter(IpAddr::is_ipv4);
    let is_wide = |text: &&String| text.contains('/') && !text.ends_with("/32");
    first.name != second.name
        && first
            .addresses
            .iter()
            .filter(is_wide)
            .any(|own| second.addresses.iter().filter_map(address).any(|other| contains(own, other)))
}

/// Whether an interface answers for addresses of others: neither its own setting nor that of all forbids it.
fn answers_for_others(host: &Host, name: &str) -> bool {
    let is_open = |name: &str| {
        let file = host.text(&format!("/proc/sys/net/ipv4/conf/{name}/arp_ignore")).ok().flatten();
        let of_sysctl = || {
            let start = format!("net.ipv4.conf.{name}.arp_ignore = ");
            let texts = host.recorded_texts("sysctl");
            texts
                .iter()
                .flat_map(|text| text.lines())
                .find_map(|line| Some(line.strip_prefix(&start)?.to_owned()))
        };
        file.or_else(of_sysctl).map(|text| text.trim() == "0")
    };
    is_open("all") == Some(true) && is_open(name) != Some(false)
}

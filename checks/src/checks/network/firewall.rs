//! Whether a firewall blocks traffic between the machines of a run. Opening the port of machine 0 is
//! not enough: ranks listen on ports that the kernel chooses.

use std::net::{IpAddr, Ipv4Addr};

use super::interface_name::{is_link_local, reaches_others};
use super::packet_rules::Peers;
use super::{interfaces, open_firewall, packet_filter};
use crate::checks::{Answer, Check};
use crate::facts::{Host, Interface};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Does a firewall block traffic between the machines?",
    reports: &["network.firewall"],
    preflight: false,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if !intent.has_several_nodes() || host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let peers = peers(host, intent);
    let net = &peers.net;
    let range = host.text("/proc/sys/net/ipv4/ip_local_port_range").ok().flatten();
    let range = range.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" to "));
    let (name, commands, seen) = if ufw(host) {
        if open_firewall::by_ufw(host, &peers) {
            return Ok(Vec::new());
        }
        ("ufw", vec![format!("sudo ufw allow from {net}")], None)
    } else if firewalld(host) {
        if open_firewall::by_firewalld(host, &peers) {
            return Ok(Vec::new());
        }
        let command = format!(
            "sudo firewall-cmd --permanent --zone=trusted --add-source={net} && sudo firewall-cmd --reload"
        );
        ("firewalld", vec![command], None)
    } else if let Some(filter) = packet_filter::closed(host, &peers).filter(|_| !host.is_container()) {
        (filter.name, filter.commands, Some(filter.seen))
    } else {
        return Ok(Vec::new());
    };
    let finding = Finding::new("network.firewall", format!("the firewall {name} is active"));
    let finding = if name == "nftables" {
        finding.remedy(
            "allow all traffic from the network of the other machines, and add the same rule to nftables' file, so that it stays",
        )
    } else if is_of_oracle(host) {
        finding.remedy(
            "allow all traffic from the network of the other machines, here and in the security list of their subnet in \
             Oracle's cloud",
        )
    } else {
        finding
    };
    let finding = seen.into_iter().fold(finding, Finding::seen);
    let finding = commands.into_iter().fold(finding, Finding::command);
    Ok(vec![match range {
        Some(range) => finding.seen(format!("ranks listen on ports {range}")),
        None => finding,
    }])
}

fn is_of_oracle(host: &Host) -> bool {
    let tag = host.text("/sys/class/dmi/id/chassis_asset_tag").ok().flatten();
    tag.is_some_and(|tag| tag.contains("OracleCloud"))
}

fn ufw(host: &Host) -> bool {
    let file = host.text("/etc/ufw/ufw.conf").ok().flatten().unwrap_or_default();
    let is_on = |text: &str| text.lines().any(|line| line.trim().eq_ignore_ascii_case("status: active"));
    file.lines().any(|line| line.trim().eq_ignore_ascii_case("ENABLED=yes"))
        || host.command(&["ufw", "status"]).ok().flatten().is_some_and(|output| is_on(&output.text()))
        || host.recorded_output("ufw").is_some_and(|text| is_on(&text))
}

fn firewalld(host: &Host) -> bool {
    let prints = |command: &[&str], answer: &str| {
        host.command(command).ok().flatten().is_some_and(|output| output.text().trim() == answer)
    };
    prints(&["systemctl", "is-active", "firewalld"], "active")
        || prints(&["firewall-cmd", "--state"], "running")
        || host.recorded_output("firewall-cmd").is_some_and(|text| text.trim() == "running")
}

/// The other machines: those in the network of machine 0, or of the first interface that is not virtual.
fn peers(host: &Host, intent: &Intent) -> Peers {
    let master = intent.master_addr.as_deref().and_then(|name| interfaces::master(host, name).ok().flatten());
    let is_of_master = |text: &str| master.is_some_and(|master| interfaces::contains(text, master));
    let has_master = |one: &Interface| one.addresses.iter().any(|text| is_of_master(text));
    let interfaces = host.interfaces().unwrap_or_default();
    let mut usable: Vec<&Interface> =
        interfaces.iter().filter(|one| has_master(one) || reaches_others(one)).collect();
    usable.sort_by_key(|one| (!has_master(one), is_link_local(one)));
    let found = usable.into_iter().find_map(|one| {
        let nets = one.addresses.iter().filter_map(|text| Some((network(text)?, is_of_master(text))));
        let (net, _) = nets.min_by_key(|(_, is_of_master)| !is_of_master)?;
        Some((net, one.name.clone()))
    });
    let (net, interface) = found.unzip();
    // Clouds give addresses without a network, and a route to everything else in it.
    let net = match net.as_deref().and_then(|net| net.strip_suffix("/32")) {
        Some(own) => {
            let other = master.map(|master| master.to_string()).filter(|master| master != own);
            let other = other.filter(|_| intent.nnodes.is_none_or(|count| count <= 2));
            other.or_else(|| private_range(own).map(ToOwned::to_owned))
        }
        None => net,
    };
    Peers {
        net: net.unwrap_or_else(|| "ADDRESS-OF-THE-OTHER-MACHINE".to_owned()),
        interface,
        master: match master {
            Some(IpAddr::V4(master)) => Some(master),
            _ => None,
        },
        others: intent.nnodes.unwrap_or(2).saturating_sub(1),
    }
}

/// The range of private addresses that holds this one.
fn private_range(address: &str) -> Option<&'static str> {
    let address: IpAddr = address.parse().ok()?;
    ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"]
        .into_iter()
        .find(|range| interfaces::contains(range, address))
}

/// `10.0.0.0/24` of the address `10.0.0.7/24`.
fn network(address: &str) -> Option<String> {
    let (address, length) = address.split_once('/')?;
    let length: u32 = length.parse().ok()?;
    let mask = u32::MAX.checked_shl(32u32.checked_sub(length)?).unwrap_or(0);
    let net = Ipv4Addr::from_bits(address.parse::<Ipv4Addr>().ok()?.to_bits() & mask);
    Some(format!("{net}/{length}"))
}

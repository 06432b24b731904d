//! How machines reach each other.

use std::collections::BTreeSet;

use yolo_base::format;

use crate::checks::{contains, leads_out, master};
use crate::compare::machine::Machine;
use crate::compare::reading::Reading;
use crate::compare::rule::{Meaning, Rule};
use crate::facts::Interface;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "network",
        what: "kinds of network",
        read: kinds,
        judge: |_| {
            Meaning::slows(
                "gradients travel at the speed of the slower network, and ranks that choose networks without \
                 a connection do not find each other",
                "connect all machines to one network, and name its interface on each in NCCL_SOCKET_IFNAME \
                 and GLOO_SOCKET_IFNAME",
            )
        },
    },
    Rule {
        id: "network-interfaces",
        what: "network interfaces",
        read: |machine| Reading::of(machine.host.interfaces(), |all| Reading::text(list(names(&all)))),
        judge: |_| {
            Meaning::harmless(
                "ranks find each other by address; where a variable names an interface, set it per machine",
            )
        },
    },
    Rule {
        id: "mtu",
        what: "largest packet (MTU) of the network to machine 0",
        read: mtu,
        judge: |_| {
            // Each end of a connection tells the other what it takes. A switch that takes less than both ends is not seen here.
            Meaning::harmless(
                "the two ends of a connection agree on the smaller MTU; large packets are used only where both ends allow them",
            )
        },
    },
    Rule {
        id: "infiniband",
        what: "InfiniBand adapters",
        read: |machine| {
            if machine.is_not_linux() {
                return Reading::NotApplicable;
            }
            Reading::of(machine.host.folder("/sys/class/infiniband"), |names| {
                match names.unwrap_or_default().len() {
                    0 => Reading::absent("none"),
                    number => Reading::text(number.to_string()),
                }
            })
        },
        judge: |seen| {
            if !seen.has("none") {
                return Meaning::slows(
                    "the machine with fewer adapters sends its gradients more slowly",
                    "name the adapters to use on each machine in NCCL_IB_HCA",
                );
            }
            Meaning::slows(
                "NCCL prefers InfiniBand where it finds it, but ranks must use the same kind of network",
                "set NCCL_IB_DISABLE=1 on all machines, so that all ranks use sockets",
            )
        },
    },
];

/// The interfaces that can lead to other machines: they are up, and have an address.
fn names(interfaces: &[Interface]) -> BTreeSet<String> {
    let leading = interfaces
        .iter()
        .filter(|one| one.up != Some(false) && !one.addresses.is_empty() && leads_out(&one.name));
    leading.map(|one| one.name.clone()).collect()
}

fn kinds(machine: &Machine<'_>) -> Reading {
    Reading::of(machine.host.interfaces(), |all| {
        Reading::text(list(names(&all).iter().map(|name| kind(name).to_owned()).collect()))
    })
}

/// Of the interface in machine 0's network, or of the only one.
fn mtu(machine: &Machine<'_>) -> Reading {
    let host = machine.host;
    if machine.is_not_linux() {
        return Reading::NotApplicable;
    }
    let all = host.interfaces().unwrap_or_default();
    let names = names(&all);
    let master = machine.intent.master_addr.as_deref().and_then(|name| master(host, name).ok().flatten());
    let has_master = |one: &&Interface| {
        names.contains(&one.name)
            && one.addresses.iter().any(|address| master.is_some_and(|master| contains(address, master)))
    };
    let of_master = all.iter().find(has_master).map(|one| one.name.clone());
    let only = || names.first().filter(|_| names.len() == 1).cloned();
    let file = |name: String| host.text(&format!("/sys/class/net/{name}/mtu")).ok().flatten();
    Reading::if_any(of_master.or_else(only).and_then(file).map(|text| text.trim().to_owned()))
}

fn list(names: BTreeSet<String>) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    format::list(&names.into_iter().collect::<Vec<_>>())
}

/// The kind of an interface by its name, as systemd and the kernel choose it.
fn kind(name: &str) -> &'static str {
    match name {
        _ if name.starts_with("ib") => "InfiniBand",
        _ if name.starts_with("wl") => "Wi-Fi",
        _ if name.starts_with("ww") => "mobile",
        _ => "Ethernet",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_interfaces_say_their_kind() {
        assert_eq!(["enp65s0f0", "eth0", "bond0"].map(kind), ["Ethernet"; 3]);
        assert_eq!(["ibs1", "wlp2s0", "wwan0"].map(kind), ["InfiniBand", "Wi-Fi", "mobile"]);
    }
}

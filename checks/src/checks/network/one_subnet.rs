//! Whether the ranks are told to use a network interface that Linux does not use, because another one is in the same
//! subnet with an equal route: then Linux sends everything to that subnet through the interface of the first route.
//! Ranks that are told nothing use that one as well.

use std::net::Ipv4Addr;

use yolo_base::env::NCCL_SOCKET_IFNAME;

use super::interfaces::{choice, master};
use super::{leads_out, roce_subnet};
use crate::checks::{Answer, Check};
use crate::facts::{Host, Interface};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Does Linux use the network interface that the ranks are told to use?",
    reports: &["network.one-subnet"],
    preflight: true,
    run,
};

/// A route to a subnet at which this machine is.
struct Route<'a> {
    interface: &'a str,
    destination: u32,
    mask: u32,
    metric: &'a str,
}

impl<'a> Route<'a> {
    /// A row of `/proc/net/route`: name, destination, gateway, flags, references, uses, metric, mask. The metric is
    /// decimal; addresses and flags are hexadecimal, addresses in the byte order of the machine.
    fn parse(row: &'a str) -> Option<Self> {
        /// The kernel's `RTF_REJECT`: nothing is sent by this route.
        const REJECT: u32 = 0x200;
        let fields: Vec<&str> = row.split_whitespace().collect();
        let [interface, destination, gateway, flags, _, _, metric, mask, ..] = fields[..] else {
            return None;
        };
        let number = |hex: &str| u32::from_str_radix(hex, 16).ok();
        let address = |hex: &str| number(hex).map(u32::swap_bytes);
        let (destination, mask) = (address(destination)?, address(mask)?);
        let leads_to_a_subnet = address(gateway)? == 0 && mask != 0 && number(flags)? & REJECT == 0;
        leads_to_a_subnet.then_some(Self { interface, destination, mask, metric })
    }

    /// `192.168.0.0/20`
    fn subnet(&self) -> String {
        format!("{}/{}", Ipv4Addr::from_bits(self.destination), self.mask.leading_ones())
    }

    fn is_equal(&self, other: &Self) -> bool {
        (self.destination, self.mask, self.metric) == (other.destination, other.mask, other.metric)
    }
}

/// What tells the ranks to use one interface and not another, as a sentence.
fn told(host: &Host, intent: &Intent, wanted: &str, other: &str) -> Option<String> {
    let uses_nccl = !intent.cpu && intent.backend.as_deref() != Some("gloo");
    let nccl = choice(host, NCCL_SOCKET_IFNAME).filter(|_| uses_nccl);
    if let Some(choice) = nccl.filter(|choice| choice.takes(wanted) && !choice.takes(other)) {
        return Some(format!(
            "{} is {}, so the ranks announce the address of {wanted}",
            choice.place, choice.value
        ));
    }
    // On machine 0, the other ranks connect to this address.
    let name = intent.master_addr.as_deref()?;
    let address = master(host, name).ok()??.to_string();
    let has_it = |one: &Interface| {
        let own = one.addresses.iter().map(|own| own.split_once('/').map_or(own.as_str(), |(own, _)| own));
        one.name == wanted && own.into_iter().any(|own| own == address)
    };
    let is_here = host.interfaces().is_ok_and(|all| all.iter().any(has_it));
    is_here.then(|| format!("--master-addr {name} is an address of {wanted}"))
}

fn run(host: &Host, intent: &Intent) -> Answer {
    if !intent.has_several_nodes() || host.os()? != "linux" {
        return Ok(Vec::new());
    }
    if let Some(finding) = roce_subnet::finding(host, intent) {
        return Ok(vec![finding]);
    }
    let Ok(Some(table)) = host.text("/proc/net/route") else { return Ok(Vec::new()) };
    let routes: Vec<Route<'_>> =
        table.lines().skip(1).filter_map(Route::parse).filter(|route| leads_out(route.interface)).collect();
    let found = routes.iter().find_map(|route| {
        let used = routes.iter().find(|first| first.is_equal(route))?;
        let told = told(host, intent, route.interface, used.interface)?;
        (used.interface != route.interface).then_some((used, route, told))
    });
    let Some((used, wanted, told)) = found else { return Ok(Vec::new()) };
    let title =
        format!("{} and {} are in the same subnet, {}", used.interface, wanted.interface, used.subnet());
    let finding = Finding::new("network.one-subnet", title)
        .seen(format!(
            "both routes have metric {}, so Linux sends through {} only",
            used.metric, used.interface
        ))
        .seen(told);
    let remedy = format!(
        "give the route of {} a larger metric (NetworkManager: `ipv4.route-metric`; systemd-networkd: `RouteMetric=`), or move \
         one of the two interfaces to another subnet on all machines",
        used.interface
    );
    Ok(vec![if host.is_own_machine() {
        finding.remedy(remedy)
    } else {
        finding.remedy(format!("ask the administrator of this machine to {remedy}"))
    }])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Route;

    #[test]
    fn routes_without_a_gateway_have_a_subnet() {
        let route = Route::parse("eno1\t0000A8C0\t00000000\t0001\t0\t0\t100\t00F0FFFF\t0\t0\t0").unwrap();
        assert_eq!((route.interface, route.subnet().as_str()), ("eno1", "192.168.0.0/20"));
        // The default route, and one that rejects.
        assert!(Route::parse("eno1\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0").is_none());
        assert!(Route::parse("eno1\t0000A8C0\t00000000\t0201\t0\t0\t100\t00F0FFFF\t0\t0\t0").is_none());
    }

    proptest! {
        #[test]
        fn any_rows_are_read(fields in prop::collection::vec("[0-9A-F]{0,9}|\\PC{0,4}", 8..12)) {
            let _ = Route::parse(&fields.join("\t")).map(|route| route.subnet());
        }
    }
}

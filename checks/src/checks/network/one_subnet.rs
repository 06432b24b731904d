//! Whether two network cards are in the same subnet with equal routes. Linux then sends everything through one of them,
//! while NCCL and gloo tell the other machines the address of the card that they were given.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

use super::leads_out;

pub(super) static CHECK: Check = Check {
    question: "Is each network card in a subnet of its own?",
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
    /// A row of `/proc/net/route`: name, destination, gateway, flags, references, uses, metric, mask. Addresses are
    /// hexadecimal, in the byte order of the machine.
    fn parse(row: &'a str) -> Option<Self> {
        let fields: Vec<&str> = row.split_whitespace().collect();
        let [interface, destination, gateway, _, _, _, metric, mask, ..] = fields[..] else { return None };
        let address = |hex: &str| u32::from_str_radix(hex, 16).ok().map(u32::swap_bytes);
        let (destination, mask) = (address(destination)?, address(mask)?);
        (address(gateway)? == 0 && mask != 0).then_some(Self { interface, destination, mask, metric })
    }

    /// `192.168.0.0/20`
    fn subnet(&self) -> String {
        format!("{}/{}", std::net::Ipv4Addr::from_bits(self.destination), self.mask.leading_ones())
    }

    fn is_equal(&self, other: &Self) -> bool {
        (self.destination, self.mask, self.metric) == (other.destination, other.mask, other.metric)
    }
}

fn run(host: &Host, intent: &Intent) -> Answer {
    if !intent.has_several_nodes() || host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let Ok(Some(table)) = host.text("/proc/net/route") else { return Ok(Vec::new()) };
    let routes: Vec<Route<'_>> =
        table.lines().skip(1).filter_map(Route::parse).filter(|route| leads_out(route.interface)).collect();
    let pair = routes.iter().enumerate().find_map(|(index, one)| {
        let mut later = routes[index + 1..].iter();
        later.find(|other| other.interface != one.interface && other.is_equal(one)).map(|other| (one, other))
    });
    let Some((one, other)) = pair else { return Ok(Vec::new()) };
    let title = format!("{} and {} are in the same subnet, {}", one.interface, other.interface, one.subnet());
    let finding = Finding::new("network.one-subnet", title).seen(format!(
        "both routes have metric {}, so Linux sends through {} only",
        one.metric, one.interface
    ));
    Ok(vec![if host.is_own_machine() {
        finding
    } else {
        finding.remedy(
            "ask the administrator of this machine to give each card a subnet of its own, or one of the routes a larger \
             metric",
        )
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
        assert!(Route::parse("eno1\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0").is_none());
    }

    proptest! {
        #[test]
        fn any_rows_are_read(row in "([0-9A-F]{1,9}|\\t|\\PC){0,12}") {
            let _ = Route::parse(&row).map(|route| route.subnet());
        }
    }
}

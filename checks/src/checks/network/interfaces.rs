//! Which network interface ranks on several machines use. NCCL skips docker, lo and virbr and takes
//! the first of the others, which may be a bridge, veth or tunnel instead of the right one.

use std::net::{IpAddr, Ipv4Addr};

use yolo_base::env::NCCL_SOCKET_IFNAME;
use yolo_base::socket_interfaces::SocketInterfaces;

use super::interface_name::{is_link_local, leads_out, reaches_others};
use crate::change::Change;
use crate::checks::{Answer, Check};
use crate::facts::{Host, Interface, Unknown};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::nccl_files;
use crate::status::Status;

/// Names that NCCL skips as long as there are others.
const PASSED_OVER: [&str; 3] = ["docker", "lo", "virbr"];

pub(super) static CHECK: Check = Check {
    question: "Do the ranks use the right network interface?",
    reports: &["network.interface-guess", "network.interface-unknown", "network.interface-loopback"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let several = intent.has_several_nodes();
    // `yolo` tells gloo the address by which this machine reaches machine 0, whatever GLOO_SOCKET_IFNAME says.
    let named: Vec<Choice> = choice(host, NCCL_SOCKET_IFNAME).into_iter().collect();
    if named.is_empty() && !several {
        return Ok(Vec::new());
    }
    let interfaces = host.interfaces()?;
    let up: Vec<&Interface> =
        interfaces.iter().filter(|one| one.up != Some(false) && !one.addresses.is_empty()).collect();
    let best = best(&up, intent, host);
    let mut findings = Vec::new();
    for choice in &named {
        let status = if several || intent.ranks_here() > 1 { Status::Error } else { Status::Warning };
        let taken: Vec<&&Interface> = up.iter().filter(|one| choice.takes(&one.name)).collect();
        let silent = interfaces.iter().find(|one| !choice.is_exclusion() && choice.takes(&one.name));
        let finding = if let (true, Some(one)) = (taken.is_empty(), silent) {
            silent_one(host, choice, one, status)
        } else if taken.is_empty() {
            let names: Vec<&str> = up.iter().map(|one| one.name.as_str()).collect();
            let title =
                format!("{} names {}, but no interface here has that name", choice.place, choice.value);
            Finding::new("network.interface-unknown", title)
                .status(status)
                .seen(format!("available: {}", names.join(", ")))
        } else if several && taken.iter().all(|one| one.name == "lo") {
            let title = format!("{} is {}, which reaches no other machine", choice.place, choice.value);
            Finding::new("network.interface-loopback", title)
        } else if several && choice.is_exclusion() && taken.iter().any(|one| one.name == "lo") {
            // NCCL takes the first interface that is not excluded, and lo comes first on every machine.
            let title = format!(
                "{} is {}, which leaves NCCL only lo: it reaches no other machine",
                choice.place, choice.value
            );
            Finding::new("network.interface-loopback", title)
        } else if several
            && !choice.is_exclusion()
            && taken.iter().all(|one| leads_nowhere(one, best, intent, host))
        {
            let title = format!(
                "{} names {}, which has only a link-local address and leads to no other machine",
                choice.place, choice.value
            );
            Finding::new("network.interface-unknown", title)
                .status(Status::Warning)
                .because("connections from a link-local address do not reach the other machines, and time out")
                .remedy(
                    "set the variable to an interface with an address in the network of the other machines (`ip -br addr` lists them)",
                )
        } else {
            continue;
        };
        findings.push(choice.with_remedy(finding, best));
    }
    if several && named.is_empty() && intent.backend.as_deref() != Some("gloo") && !intent.cpu {
        let master = master_of(host, intent);
        findings.extend(guess(&up, best, master));
    }
    Ok(findings)
}

/// Whether an interface has the address alone that any port with a cable gives itself, while another one is set up.
fn leads_nowhere(one: &Interface, best: Option<&Interface>, intent: &Intent, host: &Host) -> bool {
    let is_other = best.is_some_and(|best| best.name != one.name && !is_link_local(best));
    is_other && is_link_local(one) && !reaches_others(one) && !reaches(one, master_of(host, intent))
}

/// An interface that exists but does not work: it is down or has no address.
fn silent_one(host: &Host, choice: &Choice, one: &Interface, status: Status) -> Finding {
    let name = &one.name;
    // In a job or container the network is not the user's.
    let is_own = host.is_own_machine();
    let (state, remedy) = if !is_own {
        let state = if one.up == Some(false) { "is down" } else { "has no address" };
        (state, "set the variable to an interface that works, and tell the administrator of this node")
    } else if one.up == Some(false) {
        ("is down", "bring it up, check its cable and switch, or set the variable to another interface")
    } else {
        ("has no address", "assign an address to it, or set the variable to another interface")
    };
    let title = format!("{} names {}, but {name} {state}", choice.place, choice.value);
    let finding = Finding::new("network.interface-unknown", title).status(status).remedy(remedy);
    if is_own && one.up == Some(false) {
        finding.command(format!("sudo ip link set {name} up"))
    } else {
        finding
    }
}

/// What NCCL may choose by itself, if that can be wrong.
fn guess(up: &[&Interface], best: Option<&Interface>, master: Option<IpAddr>) -> Option<Finding> {
    let of = |kept: bool| {
        up.iter()
            .filter(move |one| PASSED_OVER.iter().any(|begin| one.name.starts_with(begin)) != kept)
            .copied()
    };
    let mut candidates: Vec<&Interface> = of(true).collect();
    if candidates.is_empty() {
        candidates = of(false).filter(|one| one.name != "lo").collect();
    }
    // A cable between two machines needs no other addresses, also one of USB and one with IPv6 alone.
    let is_cable = |one: &Interface| is_link_local(one) && leads_out(&one.name) && reaches(one, master);
    let is_wrong = |one: &&&Interface| !reaches_others(one) && !is_cable(one);
    let wrong: Vec<&str> = candidates.iter().filter(is_wrong).map(|one| one.name.as_str()).collect();
    if wrong.is_empty() {
        return None;
    }
    let title = format!("NCCL may use {} to reach the other machines", wrong.join(" or "));
    let finding = Finding::new("network.interface-guess", title);
    Some(match best {
        Some(best) => finding
            .seen(format!("{} has {}", best.name, best.addresses.join(", ")))
            .command(format!("export {NCCL_SOCKET_IFNAME}={}", best.name)),
        None => finding,
    })
}

/// A variable, or a line of NCCL's configuration files, that names interfaces.
pub(super) struct Choice {
    name: &'static str,
    pub(super) place: String,
    pub(super) value: String,
}

impl Choice {
    /// NCCL's rule: `^a,b` means all except these, `=a` exactly this, otherwise prefixes.
    pub(super) fn takes(&self, interface: &str) -> bool {
        let SocketInterfaces { negated, exact, names } = SocketInterfaces::parse(&self.value);
        let is = |name: &&str| if exact { interface == *name } else { interface.starts_with(*name) };
        names.iter().any(is) != negated
    }

    /// Whether NCCL reads it as an exclusion list; then lo is only skipped if it is named.
    fn is_exclusion(&self) -> bool {
        self.value.trim().starts_with('^')
    }

    fn with_remedy(&self, finding: Finding, best: Option<&Interface>) -> Finding {
        let value = best.map(|best| best.name.clone());
        if self.place == self.name {
            let command = match &value {
                Some(value) => format!("export {}={value}", self.name),
                None => format!("unset {}", self.name),
            };
            return finding.command(command).change(Change::Variable { name: self.name.to_owned(), value });
        }
        match value {
            Some(value) => finding.remedy(format!("set {}={value} in that file", self.name)),
            None => finding.remedy("remove that line"),
        }
    }
}

/// What a variable of NCCL says.
pub(super) fn choice(host: &Host, name: &'static str) -> Option<Choice> {
    let setting = nccl_files::setting(host, name)?;
    Some(Choice { name, place: setting.place(), value: setting.value })
}

/// The interface that leads to machine 0, or the only physical one.
fn best<'a>(up: &[&'a Interface], intent: &Intent, host: &Host) -> Option<&'a Interface> {
    let master = master_of(host, intent);
    let of_master = up.iter().copied().find(|one| reaches(one, master));
    let by_route = || {
        let table = host.text("/proc/net/route").ok().flatten()?;
        let name = interface_of_route(&table, master_of(host, intent)?)?;
        up.iter().copied().find(|one| one.name == name && reaches_others(one))
    };
    let real = up.iter().copied().filter(|one| reaches_others(one));
    of_master.or_else(by_route).or_else(|| real.min_by_key(|one| is_link_local(one)))
}

/// The interface of the most specific route to an address, in `/proc/net/route`: name, destination, gateway, flags, references,
/// uses, metric, mask. Numbers are those of a machine that begins with the last byte.
fn interface_of_route<'a>(table: &'a str, to: IpAddr) -> Option<&'a str> {
    let IpAddr::V4(to) = to else { return None };
    let number = |text: &str| u32::from_str_radix(text, 16).ok().map(u32::swap_bytes);
    let route = |line: &'a str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (net, mask) = (number(words.get(1)?)?, number(words.get(7)?)?);
        (to.to_bits() & mask == net).then_some((mask, *words.first()?))
    };
    // Of equals, the kernel lists first what it takes.
    let routes: Vec<(u32, &str)> = table.lines().skip(1).filter_map(route).collect();
    routes.into_iter().rev().max_by_key(|(mask, _)| *mask).map(|(_, name)| name)
}

fn master_of(host: &Host, intent: &Intent) -> Option<IpAddr> {
    intent.master_addr.as_deref().and_then(|name| master(host, name).ok().flatten())
}

/// Whether machine 0 is in a network of this interface.
fn reaches(interface: &Interface, master: Option<IpAddr>) -> bool {
    master.is_some_and(|master| interface.addresses.iter().any(|address| contains(address, master)))
}

pub(crate) fn master(host: &Host, name: &str) -> Result<Option<IpAddr>, Unknown> {
    if let Ok(address) = name.parse::<IpAddr>() {
        // The check of the master address reports loopback.
        return Ok(Some(address).filter(|address| !address.is_loopback()));
    }
    Ok(host.addresses(name)?.into_iter().find(|address| address.is_ipv4() && !address.is_loopback()))
}

/// Whether an address such as `192.168.1.20/24` is in the same subnet as another.
pub(crate) fn contains(with_prefix: &str, other: IpAddr) -> bool {
    let Some((address, length)) = with_prefix.split_once('/') else {
        return with_prefix.parse() == Ok(other);
    };
    let (Ok(address), Ok(length), IpAddr::V4(other)) =
        (address.parse::<Ipv4Addr>(), length.parse::<u32>(), other)
    else {
        return false;
    };
    let mask = u32::MAX.checked_shl(32u32.saturating_sub(length)).unwrap_or(0);
    address.to_bits() & mask == other.to_bits() & mask
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn takes(value: &str, interface: &str) -> bool {
        Choice { name: NCCL_SOCKET_IFNAME, place: NCCL_SOCKET_IFNAME.to_owned(), value: value.to_owned() }
            .takes(interface)
    }

    #[test]
    fn nccl_reads_beginnings_exact_names_and_exclusions() {
        let nccl = takes;
        assert!(nccl("eth", "eth0") && nccl("ib,eth", "eth1"));
        assert!(!nccl("=eth", "eth0") && nccl("=eth0", "eth0"));
        assert!(nccl("^docker,lo", "eth0") && !nccl("^docker,lo", "docker0"));
    }

    #[test]
    fn a_subnet_contains_its_addresses() {
        assert!(contains("192.168.1.20/24", "192.168.1.7".parse().unwrap()));
        assert!(!contains("192.168.1.20/24", "192.168.2.7".parse().unwrap()));
        assert!(contains("10.0.0.1/0", "1.2.3.4".parse().unwrap()));
        assert!(!contains("fe80::1/64", "1.2.3.4".parse().unwrap()));
    }

    #[test]
    fn the_most_specific_route_leads_to_an_address() {
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
            enp12s0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
            enp12s0\t0100000A\t00000000\t0005\t0\t0\t100\tFFFFFFFF\t0\t0\t0\n\
            enp6s0f0\t0001000A\t0101000A\t0003\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
        let to = |address: &str| interface_of_route(table, address.parse().unwrap());
        assert_eq!((to("10.0.0.7"), to("10.0.1.9")), (Some("enp12s0"), Some("enp6s0f0")));
        assert_eq!(to("fe80::1"), None);
    }

    proptest! {
        #[test]
        fn any_words_are_read(value in "(\\^|=|eth|,|:|\\PC){0,8}", address in "([0-9]{1,3}|\\.|/|:|\\PC){0,10}") {
            let _ = (takes(&value, "eth0"), contains(&address, Ipv4Addr::LOCALHOST.into()));
            let _ = interface_of_route(&value, Ipv4Addr::LOCALHOST.into());
        }
    }
}

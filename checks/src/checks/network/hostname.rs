//! Whether host names resolve as a run on several machines needs: gloo announces the address of this
//! machine's host name, and all ranks look up the name of machine 0.

use super::interface_name::{is_link_local, reaches_others};
use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Do host names resolve to addresses that other machines can reach?",
    reports: &[
        "network.hostname-loopback",
        "network.hostname-unknown",
        "network.hostname-letters",
        "network.master-unknown",
        "network.ipv6",
    ],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let mut findings = Vec::new();
    if intent.ranks_in_all() > 1 {
        findings.extend(letters(host));
    }
    if intent.has_several_nodes() {
        let (own, master) = (own_name(host), master(host, intent));
        // One of the two findings is valid even if the other is unknown.
        for answer in [own, master] {
            match answer {
                Ok(found) => findings.extend(found),
                Err(why) => findings.push(Finding::skipped("network.hostname-loopback", &why)),
            }
        }
    }
    Ok(findings)
}

/// gloo on Windows cannot use a name that is empty or has non-ASCII letters.
fn letters(host: &Host) -> Option<Finding> {
    let name = host.hostname().ok()?;
    let is_windows = host.os().is_ok_and(|os| os == "windows");
    let is_odd = name.trim().is_empty() || is_windows && !name.is_ascii();
    is_odd.then(|| {
        let command =
            if is_windows { "Rename-Computer NEW-NAME" } else { "sudo hostnamectl set-hostname NEW-NAME" };
        Finding::new(
            "network.hostname-letters",
            format!("gloo cannot use this machine's host name, \"{name}\""),
        )
        .command(command)
    })
}

/// This machine's host name, which gloo looks up unless an interface is set.
fn own_name(host: &Host) -> Result<Option<Finding>, crate::facts::Unknown> {
    let is_given = host.env("GLOO_SOCKET_IFNAME").ok().flatten().is_some_and(|name| !name.is_empty());
    // In WSL, Windows writes the name, and its finding says how to change that.
    if is_given || host.wsl().is_ok_and(|wsl| wsl.is_some()) {
        return Ok(None);
    }
    let name = host.hostname()?;
    let addresses = host.addresses(&name)?;
    let ours = host.interfaces().unwrap_or_default();
    let is_ours = |address: &std::net::IpAddr| {
        let text = address.to_string();
        ours.iter().flat_map(|one| &one.addresses).any(|own| own.split('/').next() == Some(&text))
    };
    let listed: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let finding = if addresses.is_empty() {
        Finding::new("network.hostname-unknown", format!("this machine's host name {name} does not resolve"))
    } else if addresses.iter().all(std::net::IpAddr::is_loopback) {
        let title = format!(
            "this machine's host name {name} resolves to {}, which no other machine can reach",
            listed[0]
        );
        Finding::new("network.hostname-loopback", title)
    } else if !ours.is_empty() && !addresses.iter().any(|address| address.is_loopback() || is_ours(address)) {
        let title = format!(
            "this machine's host name {name} resolves to {}, which is not one of its addresses",
            listed[0]
        );
        Finding::new("network.hostname-unknown", title)
    } else {
        return Ok(None);
    };
    let hosts = host.text("/etc/hosts").ok().flatten().unwrap_or_default();
    let line = hosts.lines().find(|line| line.split_whitespace().skip(1).any(|word| word == name));
    let finding =
        line.map_or(finding.clone(), |line| finding.seen(format!("/etc/hosts has: {}", line.trim())));
    let real = ours
        .iter()
        .filter(|one| one.up != Some(false) && reaches_others(one) && has_ipv4(&one.addresses))
        .min_by_key(|one| is_link_local(one));
    Ok(Some(match real {
        Some(real) => finding.command(format!("export GLOO_SOCKET_IFNAME={}", real.name)),
        None => finding,
    }))
}

fn has_ipv4(addresses: &[String]) -> bool {
    addresses
        .iter()
        .any(|address| address.split('/').next().is_some_and(|one| one.parse::<std::net::Ipv4Addr>().is_ok()))
}

/// Machine 0.
fn master(host: &Host, intent: &Intent) -> Result<Option<Finding>, crate::facts::Unknown> {
    let Some(name) = intent.master_addr.as_deref() else {
        // The other machines connect to machine 0, so only they need its address.
        let is_another = intent.node_rank.is_some_and(|rank| rank > 0);
        let title = "the address of machine 0 is unknown";
        return Ok(is_another.then(|| Finding::new("network.master-unknown", title)));
    };
    let addresses = match name.parse::<std::net::IpAddr>() {
        Ok(address) => vec![address],
        Err(_) => host.addresses(name)?,
    };
    let Some(first) = addresses.first() else {
        let title = format!("--master-addr {name} does not resolve");
        return Ok(Some(
            Finding::new("network.master-unknown", title)
                .because(
                    "neither /etc/hosts nor a name server knows that name on this machine; a name may be known on the machine that \
                     has it and on no other",
                )
                .remedy(
                    "on all machines, write the IP address of machine 0 instead of its name, as `ip -4 addr` shows it there; or \
                     add a line with its address and name to /etc/hosts of every machine",
                )
                .command("ip -4 addr  # on machine 0"),
        ));
    };
    if addresses.iter().all(std::net::IpAddr::is_loopback) {
        let title =
            format!("--master-addr {name} resolves to {first}, which on each machine means that machine");
        return Ok(Some(Finding::new("network.master-unknown", title)));
    }
    let off = host.text("/proc/sys/net/ipv6/conf/all/disable_ipv6").ok().flatten();
    if first.is_ipv6() && off.is_some_and(|text| text.trim() == "1") {
        let title = format!("--master-addr {name} resolves to {first}, but IPv6 is disabled here");
        let finding = Finding::new("network.ipv6", title);
        let fourth = addresses.iter().find(|address| address.is_ipv4());
        return Ok(Some(match fourth {
            Some(fourth) => finding
                .remedy(format!("use its IPv4 address on all machines: --master-addr {fourth}"))
                .command("export NCCL_SOCKET_FAMILY=AF_INET"),
            None => finding,
        }));
    }
    Ok(None)
}

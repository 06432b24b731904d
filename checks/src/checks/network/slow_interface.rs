//! Whether the run goes through a slow network although this machine is in a fast one too: all ranks use the network of
//! machine 0's address, so that this address decides.

use std::net::IpAddr;

use super::interfaces::{contains, master};
use super::reaches_others;
use crate::checks::{Answer, Check};
use crate::facts::{Host, Interface};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Does the run use the fastest network of this machine?",
    reports: &["network.slow-interface"],
    preflight: false,
    run,
};

/// Mbit/s of an ordinary network, and of one that was bought for more.
const SLOW: u32 = 1000;
const FAST: u32 = 10_000;

fn run(host: &Host, intent: &Intent) -> Answer {
    if !intent.has_several_nodes()
        || host.os()? != "linux"
        || host.is_container()
        || host.is_virtual_machine()
    {
        return Ok(Vec::new());
    }
    let Some(name) = intent.master_addr.as_deref() else { return Ok(Vec::new()) };
    let Some(master) = master(host, name).ok().flatten() else { return Ok(Vec::new()) };
    // NCCL's tensors go through these, whatever the address is.
    if host.infiniband_ports().iter().any(|port| port.is_active() == Some(true)) {
        return Ok(Vec::new());
    }
    // The check of interfaces says if they are unknown.
    let interfaces = host.interfaces().unwrap_or_default();
    let reaches = |one: &&Interface| one.addresses.iter().any(|address| contains(address, master));
    let Some(used) = interfaces.iter().find(reaches) else { return Ok(Vec::new()) };
    let is_radio = is_wireless(host, &used.name);
    let is_slow = is_radio || speed(host, &used.name).is_some_and(|speed| speed <= SLOW);
    let is_better = |one: &&Interface| {
        let speed = speed(host, &one.name).unwrap_or(0);
        let is_fast = speed >= FAST || is_radio && speed >= SLOW;
        one.name != used.name && one.up != Some(false) && is_fast && has_ipv4(one) && reaches_others(one)
    };
    let Some(better) = interfaces.iter().find(is_better).filter(|_| is_slow) else { return Ok(Vec::new()) };
    let what = match (is_radio, speed(host, &used.name)) {
        (true, _) => "Wi-Fi".to_owned(),
        (false, speed) => format!("{} Mbit/s", speed.unwrap_or(SLOW)),
    };
    let title = format!(
        "the run goes through {} ({what}), although this machine also has {} ({} Mbit/s)",
        used.name,
        better.name,
        speed(host, &better.name).unwrap_or(0)
    );
    Ok(vec![
        Finding::new("network.slow-interface", title)
            .seen(format!("--master-addr {name} is in the network of {}", used.name))
            .seen(format!("{} has {}", better.name, better.addresses.join(", ")))
            .remedy(format!(
                "if the other machines are in the network of {} too, use machine 0's address there as --master-addr, on all machines",
                better.name
            )),
    ])
}

fn speed(host: &Host, interface: &str) -> Option<u32> {
    // Without a cable, and for interfaces without a speed, it is -1 or an error.
    host.text(&format!("/sys/class/net/{interface}/speed")).ok()??.trim().parse().ok()
}

fn is_wireless(host: &Host, interface: &str) -> bool {
    ["wireless", "phy80211"]
        .iter()
        .any(|name| host.exists(&format!("/sys/class/net/{interface}/{name}")) == Ok(true))
        || interface.starts_with("wl")
}

fn has_ipv4(interface: &Interface) -> bool {
    let mut addresses =
        interface.addresses.iter().filter_map(|text| text.split('/').next()?.parse::<IpAddr>().ok());
    addresses.any(|address| address.is_ipv4())
}

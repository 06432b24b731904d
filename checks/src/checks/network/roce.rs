//! Whether one of several RoCE ports leads nowhere. Without a list of adapters, NCCL uses all ports that are active, also
//! one without an address that leads to the other machines, such as the second port of an adapter or a management port,
//! and fails to connect through it.

use std::net::IpAddr;

use super::interfaces::master;
use crate::checks::{Answer, Check};
use crate::facts::{Gpu, Host, InfinibandPort};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::nccl_files;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Do all RoCE ports lead to the other machines?",
    reports: &["network.roce-stray-port"],
    preflight: false,
    run,
};

const HCA: &str = "NCCL_IB_HCA";

fn run(host: &Host, intent: &Intent) -> Answer {
    let uses_nccl = !intent.cpu && intent.backend.as_deref() != Some("gloo");
    let set = |name: &str| nccl_files::setting(host, name).map(|setting| setting.value);
    let is_off = set("NCCL_IB_DISABLE").is_some_and(|value| value != "0")
        || set("NCCL_NET").is_some_and(|name| !name.eq_ignore_ascii_case("ib"));
    if !intent.has_several_nodes() || !uses_nccl || is_off || set(HCA).is_some() || host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let mut ports = host.infiniband_ports();
    ports.retain(|port| port.is_active() == Some(true) && !port.is_efa(host));
    // Ports of InfiniBand need no address; one of Ethernet beside them is mostly for management.
    let (ports, of_infiniband): (Vec<InfinibandPort>, Vec<InfinibandPort>) =
        ports.into_iter().partition(InfinibandPort::is_ethernet);
    let of_infiniband: Vec<String> = of_infiniband
        .iter()
        .filter(|port| port.layer.as_deref() == Some("InfiniBand"))
        .map(|port| format!("{}:{}", port.adapter, port.number))
        .collect();
    let master = intent.master_addr.as_deref().and_then(|name| master(host, name).ok().flatten());
    let counts_local = matches!(master, Some(IpAddr::V4(address)) if address.is_link_local());
    let known: Vec<(&InfinibandPort, bool)> =
        ports.iter().filter_map(|port| Some((port, leads_somewhere(host, port, counts_local)?))).collect();
    let names = |wanted: bool| {
        let of = known.iter().filter(|(_, leads)| *leads == wanted);
        of.map(|(port, _)| format!("{}:{}", port.adapter, port.number)).collect::<Vec<_>>()
    };
    let (strays, mut good) = (names(false), names(true));
    let is_beside_infiniband = !of_infiniband.is_empty();
    good.splice(0..0, of_infiniband);
    if strays.is_empty() || good.is_empty() || known.len() < ports.len() {
        return Ok(Vec::new());
    }
    let (ports, have) = if strays.len() == 1 { ("port", "has") } else { ("ports", "have") };
    let title = format!(
        "NCCL also uses the RoCE {ports} {}, which {have} no address that leads to the other machines",
        strays.join(", ")
    );
    let finding = Finding::new("network.roce-stray-port", title);
    // NCCL may leave such a port alone: Azure's machines have one for their ordinary network.
    let finding = if is_beside_infiniband { finding.status(Status::Info) } else { finding };
    if let Some((whole, half)) = halves(host, &strays, &good) {
        return Ok(vec![of_spark(host, finding, &whole, &half)]);
    }
    Ok(vec![
        finding
            .seen(format!("ports that do: {}", good.join(", ")))
            .command(format!("export {HCA}=={}", good.join(","))),
    ])
}

/// The two names under which a DGX Spark, and its relatives, show one port: `rocep1s0f0` and `roceP2p1s0f0`. The cable is used
/// in full only through both.
fn halves(host: &Host, strays: &[String], good: &[String]) -> Option<(String, String)> {
    let is_gb10 = |gpu: &Gpu| gpu.name().is_ok_and(|name| name.contains("GB10"));
    if !host.gpus().is_ok_and(|gpus| gpus.iter().any(is_gb10)) {
        return None;
    }
    let name = |port: &String| port.split(':').next().unwrap_or_default().to_owned();
    let plain = |port: &String| name(port).replacen("roceP2p", "rocep", 1);
    strays.iter().find_map(|stray| {
        let other = good.iter().find(|other| plain(other) == plain(stray))?;
        Some((name(other), name(stray)))
    })
}

/// The interface of such a port has the end of its name.
fn of_spark(host: &Host, finding: Finding, whole: &str, half: &str) -> Finding {
    let interface = half.replacen("roce", "en", 1);
    let interfaces = host.interfaces().unwrap_or_default();
    let interface = interfaces
        .into_iter()
        .map(|one| one.name)
        .find(|name| name.starts_with(&interface))
        .unwrap_or(interface + "np0");
    finding
        .seen(format!("{whole} and {half} are the two halves of one port"))
        .because(
            "the port of this machine is connected by two links, each with an adapter and an interface of its own; with one of them alone the \
             cable carries half",
        )
        .remedy(
            "give the second half an address in a network of its own, with another last number on each machine and the same largest packet \
             (mtu) as the first half, by netplan, which keeps it; then let NCCL use both halves, on all machines",
        )
        .command(format!(
            "sudo netplan set 'ethernets.{interface}.addresses=[192.168.101.1/24]' && sudo netplan set ethernets.{interface}.mtu=9000"
        ))
        .command("sudo netplan apply")
        .command(format!("export {HCA}={whole},{half}"))
}

/// Whether a port has an address that is more than link-local, or link-local if that counts; `None` if nothing is known about it.
fn leads_somewhere(host: &Host, port: &InfinibandPort, counts_local: bool) -> Option<bool> {
    if let Some(addresses) = port.addresses(host) {
        return Some(addresses.into_iter().any(|address| is_wide(address.into(), counts_local)));
    }
    let interface = host.folder(&format!("/sys/class/infiniband/{}/device/net", port.adapter)).ok()??;
    let interfaces = host.interfaces().ok()?;
    let of_port = interfaces.iter().filter(|one| interface.contains(&one.name));
    let addresses = of_port.flat_map(|one| &one.addresses);
    let mut read = addresses.filter_map(|text| text.split('/').next()?.parse::<IpAddr>().ok());
    Some(read.any(|address| is_wide(address, counts_local)))
}

/// Whether an address is neither empty nor link-local. Between two DGX Spark, the link-local ones of IPv4 count.
fn is_wide(address: IpAddr, counts_local: bool) -> bool {
    match address {
        IpAddr::V4(address) => (counts_local || !address.is_link_local()) && !address.is_unspecified(),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(address) => is_wide(address.into(), counts_local),
            None => !address.is_unspecified() && address.segments()[0] & 0xffc0 != 0xfe80,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_addresses_count_where_machine_0_has_one() {
        for (text, alone, beside) in [
            ("fe80::1", false, false),
            ("::", false, false),
            ("::ffff:169.254.3.1", false, true),
            ("::ffff:192.168.1.20", true, true),
            ("169.254.3.1", false, true),
        ] {
            let address = text.parse().unwrap();
            assert_eq!((is_wide(address, false), is_wide(address, true)), (alone, beside), "{text}");
        }
    }
}

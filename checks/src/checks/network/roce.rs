//! Whether one of several RoCE ports leads nowhere. Without a list of adapters, NCCL uses all ports that are active, also
//! one without an address that leads to the other machines, such as the second port of an adapter or a management port,
//! and fails to connect through it.

use std::net::IpAddr;

use super::interfaces::master;
use crate::checks::{Answer, Check};
use crate::facts::{Host, InfinibandPort};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::nccl_files;

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
    ports.retain(|port| port.is_active() == Some(true) && port.is_ethernet() && !port.is_efa(host));
    let master = intent.master_addr.as_deref().and_then(|name| master(host, name).ok().flatten());
    let counts_local = matches!(master, Some(IpAddr::V4(address)) if address.is_link_local());
    let known: Vec<(&InfinibandPort, bool)> =
        ports.iter().filter_map(|port| Some((port, leads_somewhere(host, port, counts_local)?))).collect();
    let names = |wanted: bool| {
        let of = known.iter().filter(|(_, leads)| *leads == wanted);
        of.map(|(port, _)| format!("{}:{}", port.adapter, port.number)).collect::<Vec<_>>()
    };
    let (strays, good) = (names(false), names(true));
    if strays.is_empty() || good.is_empty() || known.len() < ports.len() {
        return Ok(Vec::new());
    }
    let (ports, have) = if strays.len() == 1 { ("port", "has") } else { ("ports", "have") };
    let title = format!(
        "NCCL also uses the RoCE {ports} {}, which {have} no address that leads to the other machines",
        strays.join(", ")
    );
    let finding = Finding::new("network.roce-stray-port", title);
    Ok(vec![
        finding
            .seen(format!("ports with one: {}", good.join(", ")))
            .command(format!("export {HCA}=={}", good.join(","))),
    ])
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

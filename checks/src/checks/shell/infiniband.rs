//! Variables by which NCCL chooses a network between machines, compared with the adapters of this machine: InfiniBand, or
//! RoCE, its form on Ethernet. A choice that was copied from another machine breaks the first connection, or leaves a run
//! to TCP sockets without a message.

use std::net::Ipv6Addr;

use crate::facts::{Guest, Host, INFINIBAND_ADAPTERS as ADAPTERS, InfinibandPort};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::nccl_files::{self, Setting};
use crate::status::Status;

/// The number of an entry in a port's table of addresses (GIDs).
const GID: &str = "NCCL_IB_GID_INDEX";
const HCA: &str = "NCCL_IB_HCA";
const DISABLE: &str = "NCCL_IB_DISABLE";
const NET: &str = "NCCL_NET";
const TOPOLOGY: &str = "NCCL_TOPO_FILE";
const PLUGIN: &str = "NCCL_NET_PLUGIN";

/// What is wrong with these variables. A run on one machine does not use them.
pub(super) fn findings(host: &Host, intent: &Intent) -> Vec<Finding> {
    if intent.cpu || intent.run && !intent.has_several_nodes() {
        return Vec::new();
    }
    let ports = host.infiniband_ports();
    let mut findings: Vec<Finding> = Vec::new();
    findings.extend(gid(host, &ports));
    findings.extend(hca(host, &ports));
    findings.extend(off(host, &ports));
    findings.extend(net(host, &ports));
    findings.extend(topology(host));
    findings.extend(plugin(host, &ports));
    findings.extend(mismatch(host));
    // Which run it concerns is not known yet.
    if intent.run {
        findings
    } else {
        findings.into_iter().map(|finding| finding.status(Status::Info)).collect()
    }
}

fn set(host: &Host, name: &str) -> Option<Setting> {
    nccl_files::setting(host, name).filter(|setting| !setting.value.trim().is_empty())
}

/// Whether an entry is of RoCE v2, the version that routers forward.
fn is_version_2(host: &Host, port: &InfinibandPort, entry: u32) -> bool {
    let text = host.text(&format!("{}/gid_attrs/types/{entry}", port.folder())).ok().flatten();
    text.is_some_and(|text| text.contains("v2"))
}

/// The first entry that other networks reach.
fn best_entry(host: &Host, port: &InfinibandPort) -> Option<u32> {
    let address = |entry: u32| port.address(host, entry).flatten();
    port.entries(host).into_iter().find(|&entry| {
        is_version_2(host, port, entry) && address(entry).is_some_and(|address| !is_link_local(address))
    })
}

fn is_link_local(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xffc0 == 0xfe80
}

/// Whether NCCL's list of adapters takes a port: `mlx5_0,mlx5_1:1`, `=mlx5_1`, `^mlx5_2`; names are beginnings unless
/// the list starts with `=`.
pub(in crate::checks) fn takes(list: &str, port: &InfinibandPort) -> bool {
    let (negated, list) = list.strip_prefix('^').map_or((false, list), |rest| (true, rest));
    let (exact, list) = list.strip_prefix('=').map_or((false, list), |rest| (true, rest));
    let is = |one: &str| {
        let (name, number) =
            one.trim().split_once(':').map_or((one.trim(), None), |(name, number)| (name, Some(number)));
        let is_name =
            if exact { port.adapter == name } else { !name.is_empty() && port.adapter.starts_with(name) };
        is_name && number.is_none_or(|number| number == port.number)
    };
    list.split(',').any(is) != negated
}

/// An entry of the table of addresses that does not reach other machines.
fn gid(host: &Host, ports: &[InfinibandPort]) -> Option<Finding> {
    let setting = set(host, GID)?;
    let entry: u32 = setting.value.trim().parse().ok()?;
    let list = set(host, HCA).map(|list| list.value).unwrap_or_default();
    let used = |port: &&InfinibandPort| {
        port.is_ethernet() && port.is_active() != Some(false) && (list.is_empty() || takes(&list, port))
    };
    let used: Vec<&InfinibandPort> = ports.iter().filter(used).collect();
    // Each port has its own table, so that the entry may be right on one and wrong on another.
    let worst = used
        .iter()
        .filter_map(|port| Some((*port, flaw_of_entry(host, port, entry)?)))
        .max_by_key(|(_, (_, status))| *status);
    let (port, (what, status)) = worst?;
    let title = format!("{} is \"{entry}\": {what}", setting.place());
    let finding = setting.finding("shell.variable-breaks", title).status(status).because(
        "ranks on other machines cannot connect to this address over RoCE: ibv_modify_qp fails with `Connection timed \
         out` or `Invalid argument`",
    );
    let mut bests: Vec<u32> = used.iter().filter_map(|port| best_entry(host, port)).collect();
    bests.dedup();
    if bests.len() > 1 {
        return Some(setting.command(finding.seen("the ports have their addresses in different entries").remedy(
            "unset the variable on all machines (in a compose file with `null`), so that NCCL chooses the entry of each port",
        )));
    }
    Some(match best_entry(host, port) {
        Some(best) => {
            let address = port.address(host, best).flatten().map_or(String::new(), |address| {
                let plain =
                    address.to_ipv4_mapped().map_or(address.to_string(), |address| address.to_string());
                format!(", {plain}")
            });
            setting.command(finding.seen(format!("entry {best} is of RoCE v2{address}")).remedy(format!(
                "unset the variable on all machines, so that NCCL chooses an entry itself, or set it to {best}"
            )))
        }
        None => setting.command(setting.text(finding)),
    })
}

/// Why an entry of a port's table does not reach other machines; `None` if it does, or if it is unknown.
fn flaw_of_entry(host: &Host, port: &InfinibandPort, entry: u32) -> Option<(String, Status)> {
    let who = format!("{} port {}", port.adapter, port.number);
    Some(match port.address(host, entry)? {
        None => (format!("entry {entry} of the GID table of {who} is empty"), Status::Error),
        Some(address) if is_link_local(address) => (
            format!(
                "that GID of {who} is the link-local address {address}, which is not routed to other networks"
            ),
            Status::Warning,
        ),
        Some(_) if !is_version_2(host, port, entry) && best_entry(host, port).is_some() => (
            format!("that GID of {who} is of RoCE v1, which is not routed to other networks"),
            Status::Warning,
        ),
        Some(_) => return None,
    })
}

/// Adapters that do not exist or have no link.
fn hca(host: &Host, ports: &[InfinibandPort]) -> Option<Finding> {
    let setting = set(host, HCA)?;
    let list = setting.value.clone();
    // Without a list of adapters, nothing is known.
    host.folder(ADAPTERS).ok()?;
    let taken: Vec<&InfinibandPort> = ports.iter().filter(|port| takes(&list, port)).collect();
    if taken.iter().any(|port| port.is_active() != Some(false)) {
        return None;
    }
    let names: Vec<&str> = ports
        .iter()
        .filter(|port| port.is_active() != Some(false))
        .map(|port| port.adapter.as_str())
        .collect();
    let what = match (taken.first(), names.is_empty()) {
        (Some(port), _) if port.has_link == Some(true) => {
            format!("port {} of {} is not active, although its cable has a link", port.number, port.adapter)
        }
        (Some(port), _) => format!("port {} of {} has no link", port.number, port.adapter),
        (None, true) => "this machine has no InfiniBand adapter with a link".to_owned(),
        (None, false) => "no adapter of this machine has that name".to_owned(),
    };
    let title = format!("{} is \"{list}\": {what}, so NCCL uses TCP sockets", setting.place());
    let finding = setting.finding("shell.variable-slows", title);
    let finding =
        if names.is_empty() { finding } else { finding.seen(format!("with a link: {}", names.join(", "))) };
    Some(setting.command(setting.text(finding)))
}

/// A fast network that is switched off. It may be on purpose.
fn off(host: &Host, ports: &[InfinibandPort]) -> Option<Finding> {
    let setting = set(host, DISABLE).filter(|setting| setting.value != "0")?;
    // Amazon's adapters are used by a plugin, whatever this variable says.
    let port = ports.iter().find(|port| port.is_active() == Some(true) && !port.is_efa(host))?;
    let title = format!(
        "{} is \"{}\": the machines communicate through TCP sockets, although {} has a link",
        setting.place(),
        setting.value,
        port.adapter
    );
    let finding = setting.finding("shell.variable-slows", title).status(Status::Info);
    Some(setting.command(setting.text(finding)))
}

/// A network that nothing here provides.
fn net(host: &Host, ports: &[InfinibandPort]) -> Option<Finding> {
    let setting = set(host, NET)?;
    let (value, place) = (setting.value.clone(), setting.place());
    let title = match value.to_ascii_lowercase().as_str() {
        "socket" => {
            let port = ports.iter().find(|port| port.is_active() == Some(true))?;
            let title = format!(
                "{place} is \"{value}\": the machines communicate through TCP sockets, although {} has a link",
                port.adapter
            );
            let finding = setting.finding("shell.variable-slows", title).status(Status::Info);
            return Some(setting.command(setting.text(finding)));
        }
        "ib" => {
            host.folder(ADAPTERS).ok()?;
            if !ports.is_empty() {
                return None;
            }
            format!("{place} is \"{value}\", but this machine has no InfiniBand adapter")
        }
        _ => {
            let plugin = set(host, PLUGIN).map(|plugin| plugin.value).unwrap_or_default();
            let library = library_of(&plugin);
            if library.contains('/') || !host.library(&library).ok()?.is_empty() {
                return None;
            }
            format!("{place} is \"{value}\", but the loader does not find the plugin for it ({library})")
        }
    };
    let finding = setting
        .finding("shell.variable-breaks", title)
        .because("NCCL has no network of that name here, and does not start without it");
    Some(setting.command(setting.text(finding)))
}

/// A description of a cloud's machine that was not brought along, for example into a container.
fn topology(host: &Host) -> Option<Finding> {
    let setting = set(host, TOPOLOGY)?;
    let file = &setting.value;
    if host.exists(file) != Ok(false) {
        return None;
    }
    let title = format!("{} names {file}, which does not exist", setting.place());
    let finding = setting.finding("shell.variable-slows", title)
        .because("NCCL then guesses which network card is near which GPU; clouds describe their machines in this file")
        .remedy(match &setting.file {
            Some(of) => format!("mount that file into the container, or remove the line from {of}"),
            None => "mount that file into the container, or unset the variable".to_owned(),
        });
    Some(setting.command(finding))
}

/// NCCL compares the networks of all machines, unless it is told not to (NVIDIA/nccl#2428).
fn mismatch(host: &Host) -> Option<Finding> {
    let setting = set(host, "NCCL_IGNORE_NET_MISMATCH").filter(|setting| setting.value != "0")?;
    let title = format!(
        "{} is \"{}\": if the machines have different adapters, NCCL does not notice it and may hang",
        setting.place(),
        setting.value
    );
    let finding = setting.finding("shell.variable-slows", title).remedy(
        "unset the variable on all machines, and name in NCCL_IB_HCA the adapters that all of them have",
    );
    Some(setting.command(finding))
}

/// The file name of a plugin for networks.
pub(in crate::checks) fn library_of(plugin: &str) -> String {
    match plugin {
        "" => "libnccl-net.so".to_owned(),
        name if name.contains(".so") => name.to_owned(),
        name => format!("libnccl-net-{name}.so"),
    }
}

/// A plugin that is not here: an image of one cloud that runs in another. NCCL then uses its own networks.
fn plugin(host: &Host, ports: &[InfinibandPort]) -> Option<Finding> {
    let setting = set(host, PLUGIN).filter(|plugin| plugin.value != "none")?;
    // Amazon's network has a check of its own, and the rule above covers a network that is named.
    if set(host, NET).is_some() || ports.iter().any(|port| port.is_efa(host)) {
        return None;
    }
    let library = library_of(&setting.value);
    let is_there = |name: &str| {
        if name.contains('/') {
            host.exists(name).ok()
        } else {
            host.library(name).ok().map(|found| !found.is_empty())
        }
    };
    if is_there(&library)? {
        return None;
    }
    let title = format!(
        "{} is \"{}\", but the loader does not find the plugin ({library}), so NCCL uses its own networks",
        setting.place(),
        setting.value
    );
    // In a cloud whose network needs a plugin, the sockets that are left are many times slower.
    let status = match host.guest() {
        Some(Guest::Cloud(_)) => Status::Warning,
        _ => Status::Info,
    };
    let finding = setting.finding("shell.variable-slows", title).status(status);
    let finding = finding.remedy(
        "add the folder of the plugin to LD_LIBRARY_PATH if this machine has it; otherwise unset the variable, which an image \
         for another cloud may have set",
    );
    Some(setting.command(finding))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nccl_reads_beginnings_exact_names_ports_and_exclusions() {
        let port = |adapter: &str, number: &str| InfinibandPort {
            adapter: adapter.to_owned(),
            number: number.to_owned(),
            ..InfinibandPort::default()
        };
        assert!(takes("mlx5", &port("mlx5_3", "1")) && takes("mlx5_0,mlx5_1:2", &port("mlx5_1", "2")));
        assert!(!takes("mlx5_1:2", &port("mlx5_1", "1")) && !takes("=mlx5_1", &port("mlx5_10", "1")));
        assert!(takes("^mlx5_0", &port("mlx5_1", "1")) && !takes("^=mlx5_0", &port("mlx5_0", "1")));
    }

    #[test]
    fn link_local_addresses_begin_with_fe80() {
        assert!(is_link_local("fe80::ac0:ebff:feda:1cfb".parse().unwrap()));
        assert!(!is_link_local("::ffff:10.0.0.1".parse().unwrap()));
    }
}

//! Variables by which NCCL chooses a network between machines, compared with the adapters of this machine: InfiniBand, or
//! RoCE, its form on Ethernet. A choice that was copied from another machine breaks the first connection, or leaves a run
//! to TCP sockets without a message.

use std::net::Ipv6Addr;

use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

const ADAPTERS: &str = "/sys/class/infiniband";
/// The number of an entry in a port's table of addresses (GIDs).
const GID: &str = "NCCL_IB_GID_INDEX";
const HCA: &str = "NCCL_IB_HCA";
const DISABLE: &str = "NCCL_IB_DISABLE";
const NET: &str = "NCCL_NET";
const TOPOLOGY: &str = "NCCL_TOPO_FILE";
/// Entries of the table that are looked at for a better one.
const ENTRIES: u32 = 8;

/// What is wrong with these variables. A run on one machine does not use them.
pub(super) fn findings(host: &Host, intent: &Intent) -> Vec<Finding> {
    if intent.cpu || intent.run && !intent.has_several_nodes() {
        return Vec::new();
    }
    let ports = ports(host);
    let mut findings: Vec<Finding> = Vec::new();
    findings.extend(gid(host, &ports));
    findings.extend(hca(host, &ports));
    findings.extend(off(host, &ports));
    findings.extend(net(host, &ports));
    findings.extend(topology(host));
    // Which run it concerns is not known yet.
    if intent.run {
        findings
    } else {
        findings.into_iter().map(|finding| finding.status(Status::Info)).collect()
    }
}

fn set(host: &Host, name: &str) -> Option<String> {
    host.env(name).ok().flatten().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// A port of an adapter.
struct Port {
    adapter: String,
    number: String,
    is_active: Option<bool>,
    is_ethernet: bool,
}

impl Port {
    fn folder(&self) -> String {
        format!("{ADAPTERS}/{}/ports/{}", self.adapter, self.number)
    }

    /// The address of an entry; `None` if it is unknown, and `Some(None)` if the entry is empty.
    fn address(&self, host: &Host, entry: u32) -> Option<Option<Ipv6Addr>> {
        let text = host.text(&format!("{}/gids/{entry}", self.folder())).ok()?;
        Some(
            text.and_then(|text| text.trim().parse::<Ipv6Addr>().ok())
                .filter(|address| !address.is_unspecified()),
        )
    }

    /// Whether an entry is of RoCE v2, the version that routers forward.
    fn is_version_2(&self, host: &Host, entry: u32) -> bool {
        let text = host.text(&format!("{}/gid_attrs/types/{entry}", self.folder())).ok().flatten();
        text.is_some_and(|text| text.contains("v2"))
    }

    /// The first entry that other networks reach.
    fn best_entry(&self, host: &Host) -> Option<u32> {
        let address = |entry: u32| self.address(host, entry).flatten();
        (0..ENTRIES).find(|&entry| {
            self.is_version_2(host, entry) && address(entry).is_some_and(|address| !is_link_local(address))
        })
    }
}

fn is_link_local(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xffc0 == 0xfe80
}

fn ports(host: &Host) -> Vec<Port> {
    let adapters = host.folder(ADAPTERS).ok().flatten().unwrap_or_default();
    let port = |adapter: &String| {
        let folder = format!("{ADAPTERS}/{adapter}/ports");
        let numbers = host.folder(&folder).ok().flatten().unwrap_or_else(|| vec!["1".to_owned()]);
        let adapter = adapter.clone();
        numbers
            .into_iter()
            .map(move |number| {
                let file = |name: &str| host.text(&format!("{folder}/{number}/{name}")).ok().flatten();
                Port {
                    is_active: file("state").map(|state| state.contains("ACTIVE")),
                    is_ethernet: file("link_layer").is_some_and(|layer| layer.trim() == "Ethernet"),
                    adapter: adapter.clone(),
                    number: number.clone(),
                }
            })
            .collect::<Vec<_>>()
    };
    adapters.iter().flat_map(port).collect()
}

/// Whether NCCL's list of adapters takes a port: `mlx5_0,mlx5_1:1`, `=mlx5_1`, `^mlx5_2`; names are beginnings unless
/// the list starts with `=`.
fn takes(list: &str, port: &Port) -> bool {
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
fn gid(host: &Host, ports: &[Port]) -> Option<Finding> {
    let entry: u32 = set(host, GID)?.parse().ok()?;
    let list = set(host, HCA).unwrap_or_default();
    let used = |port: &&Port| {
        port.is_ethernet && port.is_active != Some(false) && (list.is_empty() || takes(&list, port))
    };
    let port = ports.iter().find(used)?;
    let who = format!("{} port {}", port.adapter, port.number);
    let (what, status) = match port.address(host, entry)? {
        None => (format!("entry {entry} of the GID table of {who} is empty"), Status::Error),
        Some(address) if is_link_local(address) => (
            format!(
                "that GID of {who} is the link-local address {address}, which is not routed to other networks"
            ),
            Status::Warning,
        ),
        Some(_) if !port.is_version_2(host, entry) && port.best_entry(host).is_some() => (
            format!("that GID of {who} is of RoCE v1, which is not routed to other networks"),
            Status::Warning,
        ),
        Some(_) => return None,
    };
    let title = format!("{GID} is \"{entry}\": {what}");
    let finding = Finding::new("shell.variable-breaks", title).status(status).because(
        "ranks on other machines cannot connect to this address over RoCE: ibv_modify_qp fails with `Connection timed \
         out` or `Invalid argument`",
    );
    Some(match port.best_entry(host) {
        Some(best) => {
            let address = port.address(host, best).flatten().map_or(String::new(), |address| {
                let plain =
                    address.to_ipv4_mapped().map_or(address.to_string(), |address| address.to_string());
                format!(", {plain}")
            });
            finding
                .seen(format!("entry {best} is of RoCE v2{address}"))
                .remedy(format!(
                    "unset the variable on all machines, so that NCCL chooses an entry itself, or set it to {best}"
                ))
                .command(format!("unset {GID}"))
        }
        None => finding.command(format!("unset {GID}")),
    })
}

/// Adapters that do not exist or have no link.
fn hca(host: &Host, ports: &[Port]) -> Option<Finding> {
    let list = set(host, HCA)?;
    // Without a list of adapters, nothing is known.
    host.folder(ADAPTERS).ok()?;
    let taken: Vec<&Port> = ports.iter().filter(|port| takes(&list, port)).collect();
    if taken.iter().any(|port| port.is_active != Some(false)) {
        return None;
    }
    let names: Vec<&str> =
        ports.iter().filter(|port| port.is_active != Some(false)).map(|port| port.adapter.as_str()).collect();
    let what = match (taken.first(), names.is_empty()) {
        (Some(port), _) => format!("port {} of {} has no link", port.number, port.adapter),
        (None, true) => "this machine has no InfiniBand adapter with a link".to_owned(),
        (None, false) => "no adapter of this machine has that name".to_owned(),
    };
    let title = format!("{HCA} is \"{list}\": {what}, so NCCL uses TCP sockets");
    let finding = Finding::new("shell.variable-slows", title);
    let finding =
        if names.is_empty() { finding } else { finding.seen(format!("with a link: {}", names.join(", "))) };
    Some(finding.command(format!("unset {HCA}")))
}

/// A fast network that is switched off. It may be on purpose.
fn off(host: &Host, ports: &[Port]) -> Option<Finding> {
    let value = set(host, DISABLE).filter(|value| value != "0")?;
    let port = ports.iter().find(|port| port.is_active == Some(true))?;
    let title = format!(
        "{DISABLE} is \"{value}\": the machines communicate through TCP sockets, although {} has a link",
        port.adapter
    );
    Some(Finding::new("shell.variable-slows", title).status(Status::Info).command(format!("unset {DISABLE}")))
}

/// A network that nothing here provides.
fn net(host: &Host, ports: &[Port]) -> Option<Finding> {
    let value = set(host, NET)?;
    let title = match value.to_ascii_lowercase().as_str() {
        "socket" => {
            let port = ports.iter().find(|port| port.is_active == Some(true))?;
            let title = format!(
                "{NET} is \"{value}\": the machines communicate through TCP sockets, although {} has a link",
                port.adapter
            );
            let finding = Finding::new("shell.variable-slows", title).status(Status::Info);
            return Some(finding.command(format!("unset {NET}")));
        }
        "ib" => {
            host.folder(ADAPTERS).ok()?;
            if !ports.is_empty() {
                return None;
            }
            format!("{NET} is \"{value}\", but this machine has no InfiniBand adapter")
        }
        _ => {
            let plugin = set(host, "NCCL_NET_PLUGIN").unwrap_or_default();
            let library = match plugin.as_str() {
                "" => "libnccl-net.so".to_owned(),
                name if name.contains(".so") => name.to_owned(),
                name => format!("libnccl-net-{name}.so"),
            };
            if library.contains('/') || !host.library(&library).ok()?.is_empty() {
                return None;
            }
            format!("{NET} is \"{value}\", but the loader does not find the plugin for it ({library})")
        }
    };
    let finding = Finding::new("shell.variable-breaks", title)
        .because("NCCL has no network of that name here, and does not start without it");
    Some(finding.command(format!("unset {NET}")))
}

/// A description of a cloud's machine that was not brought along, for example into a container.
fn topology(host: &Host) -> Option<Finding> {
    let file = set(host, TOPOLOGY)?;
    if host.exists(&file) != Ok(false) {
        return None;
    }
    let title = format!("{TOPOLOGY} names {file}, which does not exist");
    Some(
        Finding::new("shell.variable-slows", title)
            .because("NCCL then guesses which network card is near which GPU; clouds describe their machines in this file")
            .remedy("mount that file into the container, or unset the variable")
            .command(format!("unset {TOPOLOGY}")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nccl_reads_beginnings_exact_names_ports_and_exclusions() {
        let port = |adapter: &str, number: &str| Port {
            adapter: adapter.to_owned(),
            number: number.to_owned(),
            is_active: Some(true),
            is_ethernet: true,
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

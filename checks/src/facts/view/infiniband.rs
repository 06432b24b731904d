//! The ports of InfiniBand adapters, and of those that speak RoCE, its form on Ethernet. A live host has them in
//! sysfs; a recording may have the output of `ibstat`, `ibv_devinfo` or `rdma link` instead.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;

use crate::facts::host::Host;
use crate::facts::question::Section;

/// Where the kernel lists the adapters, in containers too.
pub(crate) const ADAPTERS: &str = "/sys/class/infiniband";

/// Entries of a port's table of addresses that are looked at. Each virtual interface of a machine with containers takes some.
const ENTRIES: u32 = 128;
/// Entries that every table has, also one that nobody listed.
const FIRST_ENTRIES: u32 = 8;

/// A port of an adapter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct InfinibandPort {
    /// Such as `mlx5_0`.
    pub(crate) adapter: String,
    pub(crate) number: String,
    /// `ACTIVE`, `INIT`, `DOWN`, …, if it is known.
    pub(crate) state: Option<String>,
    /// `InfiniBand` or `Ethernet`, if it is known.
    pub(crate) layer: Option<String>,
    /// Whether the physical link is up.
    pub(crate) has_link: Option<bool>,
}

impl InfinibandPort {
    /// Whether it carries traffic.
    pub(crate) fn is_active(&self) -> Option<bool> {
        self.state.as_ref().map(|state| state == "ACTIVE")
    }

    /// Whether it is a port of RoCE.
    pub(crate) fn is_ethernet(&self) -> bool {
        self.layer.as_deref() == Some("Ethernet")
    }

    /// Its folder in sysfs.
    pub(crate) fn folder(&self) -> String {
        format!("{ADAPTERS}/{}/ports/{}", self.adapter, self.number)
    }

    /// The address of an entry of its table (GID); `None` if it is unknown, and `Some(None)` if the entry is empty.
    pub(crate) fn address(&self, host: &Host, entry: u32) -> Option<Option<Ipv6Addr>> {
        let text = host.text(&format!("{}/gids/{entry}", self.folder())).ok()?;
        let address = text.and_then(|text| text.trim().parse::<Ipv6Addr>().ok());
        Some(address.filter(|address| !address.is_unspecified()))
    }

    /// The numbers of the entries of its table, as far as they are listed or read.
    pub(crate) fn entries(&self, host: &Host) -> Vec<u32> {
        let folder = format!("{}/gids", self.folder());
        let listed = host.folder(&folder).ok().flatten().unwrap_or_default();
        let start = format!("{folder}/");
        let recorded = host.recorded_names(Section::Files).into_iter();
        let recorded = recorded.filter_map(|name| name.strip_prefix(&start).map(ToOwned::to_owned));
        let mut numbers: BTreeSet<u32> =
            listed.into_iter().chain(recorded).filter_map(|name| name.parse().ok()).collect();
        if numbers.is_empty() {
            numbers.extend(0..FIRST_ENTRIES);
        }
        numbers.into_iter().filter(|number| *number < ENTRIES).collect()
    }

    /// The addresses in its table; `None` if no entry is known.
    pub(crate) fn addresses(&self, host: &Host) -> Option<Vec<Ipv6Addr>> {
        let known: Vec<Option<Ipv6Addr>> =
            self.entries(host).into_iter().filter_map(|entry| self.address(host, entry)).collect();
        (!known.is_empty()).then(|| known.into_iter().flatten().collect())
    }

    /// Whether it is of Amazon's Elastic Fabric Adapter, which is listed here, but is neither of the two.
    pub(crate) fn is_efa(&self, host: &Host) -> bool {
        const AMAZON: &str = "0x1d0f";
        let vendor = host.text(&format!("{ADAPTERS}/{}/device/vendor", self.adapter)).ok().flatten();
        match vendor {
            Some(vendor) => vendor.trim() == AMAZON,
            None => self.adapter.starts_with("rdmap") || self.adapter.starts_with("efa_"),
        }
    }
}

impl Host {
    /// The ports of all adapters; empty if there are none, or if they are unknown.
    pub(crate) fn infiniband_ports(&self) -> Vec<InfinibandPort> {
        let mut adapters = self.folder(ADAPTERS).ok().flatten().unwrap_or_default();
        if adapters.is_empty() && self.is_recorded() {
            adapters = self.adapters_with_files();
        }
        if adapters.is_empty() {
            return self.recorded_ports();
        }
        adapters.iter().flat_map(|adapter| self.ports_of(adapter)).collect()
    }

    /// The adapters of which a recording has files, but no list.
    fn adapters_with_files(&self) -> Vec<String> {
        let names = self.recorded_names(Section::Files);
        let of_adapter = |name: &String| {
            let rest = name.strip_prefix(ADAPTERS)?.strip_prefix('/')?;
            Some(rest.split('/').next()?.to_owned())
        };
        names.iter().filter_map(of_adapter).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn ports_of(&self, adapter: &str) -> Vec<InfinibandPort> {
        let folder = format!("{ADAPTERS}/{adapter}/ports");
        let numbers = self.folder(&folder).ok().flatten().unwrap_or_else(|| vec!["1".to_owned()]);
        let port = |number: String| {
            let file = |name: &str| self.text(&format!("{folder}/{number}/{name}")).ok().flatten();
            InfinibandPort {
                adapter: adapter.to_owned(),
                state: file("state").as_deref().and_then(state),
                layer: file("link_layer").map(|layer| layer.trim().to_owned()),
                has_link: file("phys_state").map(|text| text.contains("LinkUp")),
                number,
            }
        };
        numbers.into_iter().map(port).collect()
    }

    fn recorded_ports(&self) -> Vec<InfinibandPort> {
        let programs = ["ibstat", "ibv_devinfo", "ibstatus", "rdma"];
        let outputs = programs.iter().flat_map(|program| self.recorded_outputs(program));
        let mut found: Vec<InfinibandPort> = Vec::new();
        for port in outputs.flat_map(|(_, output)| read(&output.text())) {
            let is_same =
                |one: &&mut InfinibandPort| (&one.adapter, &one.number) == (&port.adapter, &port.number);
            match found.iter_mut().find(is_same) {
                Some(known) => {
                    known.layer = known.layer.take().or(port.layer);
                    known.has_link = known.has_link.or(port.has_link);
                }
                None => found.push(port),
            }
        }
        found
    }
}

/// `4: ACTIVE`, `Active`, `PORT_ACTIVE (4)` and `Initializing` by their short names.
fn state(text: &str) -> Option<String> {
    let text = text.to_ascii_uppercase();
    let known = ["ACTIVE", "INIT", "ARMED", "DOWN"];
    // `ACTIVE_DEFER` is a port without a link.
    if text.contains("DEFER") {
        return Some("DOWN".to_owned());
    }
    known.into_iter().find(|word| text.contains(word)).map(ToOwned::to_owned)
}

/// The ports in an output of `ibstat`, `ibstatus`, `ibv_devinfo` or `rdma link`.
fn read(text: &str) -> Vec<InfinibandPort> {
    let mut adapter = String::new();
    let mut found: Vec<InfinibandPort> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(port) = of_rdma(line) {
            found.push(port);
            continue;
        }
        let Some((name, value)) = line.split_once(':').map_or_else(|| line.split_once(' '), Some) else {
            continue;
        };
        let value = value.trim();
        match name.trim().to_ascii_lowercase().as_str() {
            "ca" => adapter = value.trim_matches('\'').to_owned(),
            "hca_id" => adapter = value.to_owned(),
            "port" if !adapter.is_empty() && value.parse::<u8>().is_ok() => found.push(InfinibandPort {
                adapter: adapter.clone(),
                number: value.to_owned(),
                ..InfinibandPort::default()
            }),
            other => {
                let port = other.strip_prefix("port ").filter(|number| number.parse::<u8>().is_ok());
                if let (Some(number), false) = (port, adapter.is_empty()) {
                    found.push(InfinibandPort {
                        adapter: adapter.clone(),
                        number: number.to_owned(),
                        ..InfinibandPort::default()
                    });
                } else if let Some(port) = of_ibstatus(line) {
                    found.push(port);
                } else if let Some(port) = found.last_mut() {
                    put(port, other, value);
                }
            }
        }
    }
    found
}

fn put(port: &mut InfinibandPort, name: &str, value: &str) {
    match name {
        "state" => port.state = state(value),
        "physical state" | "phys state" | "phys_state" => {
            port.has_link = Some(value.replace('_', "").to_ascii_uppercase().contains("LINKUP"));
        }
        "link layer" | "link_layer" => port.layer = Some(value.to_owned()),
        _ => {}
    }
}

/// `Infiniband device 'mlx5_0' port 1 status:`
fn of_ibstatus(line: &str) -> Option<InfinibandPort> {
    let (adapter, rest) = line.strip_prefix("Infiniband device '")?.split_once("' port ")?;
    let number = rest.split_whitespace().next()?.to_owned();
    Some(InfinibandPort { adapter: adapter.to_owned(), number, ..InfinibandPort::default() })
}

/// `link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1f0`; only ports of Ethernet have a device of the network.
fn of_rdma(line: &str) -> Option<InfinibandPort> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |name: &str| words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1));
    let (adapter, number) = after("link")?.split_once('/')?;
    Some(InfinibandPort {
        adapter: adapter.to_owned(),
        number: number.to_owned(),
        state: state(after("state")?),
        layer: match (after("netdev"), after("subnet_prefix")) {
            (Some(_), _) => Some("Ethernet".to_owned()),
            (None, Some(_)) => Some("InfiniBand".to_owned()),
            (None, None) => None,
        },
        has_link: after("physical_state").map(|text| text.contains("LINK_UP")),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let port = |port: InfinibandPort| {
            let (state, layer) = (port.state.unwrap_or_default(), port.layer.unwrap_or_default());
            format!("{}/{} {state} {layer} {:?}", port.adapter, port.number, port.has_link)
        };
        read(text).into_iter().map(port).collect()
    }

    #[test]
    fn the_tools_list_ports_in_their_own_ways() {
        let ibstat = "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n\
            \t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tSM lid: 1\n\t\tLink layer: InfiniBand\n";
        assert_eq!(shown(ibstat), ["mlx5_0/1 ACTIVE InfiniBand Some(true)"]);
        let devinfo = "hca_id:\tmlx5_1\n\ttransport:\t\t\tInfiniBand (0)\n\tphys_port_cnt:\t1\n\t\tport:\t1\n\
            \t\t\tstate:\t\t\tPORT_INIT (2)\n\t\t\tsm_lid:\t0\n\t\t\tlink_layer:\t\tInfiniBand\n";
        assert_eq!(shown(devinfo), ["mlx5_1/1 INIT InfiniBand None"]);
        let status = "Infiniband device 'mlx5_2' port 1 status:\n\tstate:\t\t 1: DOWN\n\tphys state:\t 3: Disabled\n\
            \tlink_layer:\t Ethernet\n";
        assert_eq!(shown(status), ["mlx5_2/1 DOWN Ethernet Some(false)"]);
        let rdma = "link rocep1s0f0/1 state ACTIVE physical_state LINK_UP netdev enp1s0f0np0\n";
        assert_eq!(shown(rdma), ["rocep1s0f0/1 ACTIVE Ethernet Some(true)"]);
    }

    #[test]
    fn entries_of_a_long_table_count() {
        let files = serde_json::json!({ "/sys/class/infiniband/mlx5_0/ports/1/gids/0": "0000:0000:0000:0000:0000:0000:0000:0000\n",
            "/sys/class/infiniband/mlx5_0/ports/1/gids/11": "0000:0000:0000:0000:0000:ffff:0a00:0002\n" });
        let host =
            Host::from_value(serde_json::json!({ "version": 1, "os": "linux", "files": files })).unwrap().0;
        let port = InfinibandPort {
            adapter: "mlx5_0".to_owned(),
            number: "1".to_owned(),
            ..InfinibandPort::default()
        };
        let addresses = port.addresses(&host).unwrap();
        assert_eq!(addresses, ["::ffff:10.0.0.2".parse::<Ipv6Addr>().unwrap()]);
        let other = InfinibandPort { adapter: "mlx5_1".to_owned(), ..port };
        assert_eq!(other.addresses(&host), None);
    }

    #[test]
    fn files_of_adapters_are_a_list_of_them() {
        let files = serde_json::json!({ "/sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
            "/sys/class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand\n" });
        let host =
            Host::from_value(serde_json::json!({ "version": 1, "os": "linux", "files": files })).unwrap().0;
        let ports = host.infiniband_ports();
        assert_eq!((ports.len(), ports[0].is_active(), ports[0].is_ethernet()), (1, Some(true), false));
    }

    proptest! {
        #[test]
        fn any_output_is_read(
            text in "(CA 'mlx5_0'|hca_id:|Infiniband device '|' port |Port |port:|1|state|link | /1|: |[A-Z_]{1,8}|\\PC|\n){0,40}"
        ) {
            let _ = read(&text);
        }
    }
}

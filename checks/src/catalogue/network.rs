//! Network and ports: the rows of the catalogue.

use super::{Area, Entry};
use crate::finding::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "network.loopback",
        area: Area::Network,
        status: Status::Ok,
        title: "Ranks can meet on this machine",
        cause: "the ranks of a run meet at a port",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "network.no-loopback",
        area: Area::Network,
        status: Status::Error,
        title: "127.0.0.1 cannot be listened on",
        cause: "the ranks of a run meet at a port of this machine",
        remedy: Some("allow programs to listen on 127.0.0.1: a firewall or sandbox refuses it"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "network.port-taken",
        area: Area::Network,
        status: Status::Error,
        title: "The port of this run is taken",
        cause: "the machines of a run meet at one port, which nobody else may listen on",
        remedy: Some("end that process if it is left over from a run, or choose another --master-port"),
        fix: None,
        detects: &["port-in-use"],
    },
];

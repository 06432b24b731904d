//! Operating system and processor: the rows of the catalogue.

use super::{Area, Entry};
use crate::finding::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "system.platform",
        area: Area::System,
        status: Status::Ok,
        title: "Operating system and processor",
        cause: "libtorch is built for 64-bit x86 Linux and Windows",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "system.unsupported",
        area: Area::System,
        status: Status::Error,
        title: "No libtorch for this system",
        cause: "libtorch is built for 64-bit x86 Linux and Windows; on other systems there is none to fetch",
        remedy: Some("train on a 64-bit x86 machine with Linux, or in WSL 2 on Windows"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "system.check-failed",
        area: Area::System,
        status: Status::Warning,
        title: "A check failed",
        cause: "this is a mistake in yolo, not in your machine: what the check asks about is not judged",
        remedy: Some("report it with the file that `yolo doctor --record` writes; nothing private is in it"),
        fix: None,
        detects: &[],
    },
];

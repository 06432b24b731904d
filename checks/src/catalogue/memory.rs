//! Memory and shared memory: the rows of the catalogue.

use super::{Area, Entry};
use crate::finding::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "memory.available",
        area: Area::Memory,
        status: Status::Ok,
        title: "Memory",
        cause: "ranks and their loaders hold images and checkpoints in memory",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "memory.low",
        area: Area::Memory,
        status: Status::Warning,
        title: "Little memory is free",
        cause: "a rank that runs out of memory is killed by the system without a word",
        remedy: Some(
            "close other programs, or train with a smaller --batch-size, --imgsz or fewer --workers",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "memory.limited",
        area: Area::Memory,
        status: Status::Info,
        title: "A control group limits memory",
        cause: "the container or batch job may use only a part of the machine's memory; beyond it the system \
                kills a rank without a word",
        remedy: Some("give the container or job more memory, or train with a smaller --batch-size"),
        fix: None,
        detects: &["cgroup-mem-limit"],
    },
];

//! Disk and data set: the rows of the catalogue.

use super::{Area, Entry};
use crate::finding::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "disk.free",
        area: Area::Disk,
        status: Status::Ok,
        title: "Free space",
        cause: "libtorch, data sets and checkpoints need room",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "disk.full",
        area: Area::Disk,
        status: Status::Error,
        title: "A disk is nearly full",
        cause: "a checkpoint that does not fit is lost, and with it the training since the last one",
        remedy: Some("free space there, or move the folders with YOLO_HOME and --project"),
        fix: None,
        detects: &["disk-full"],
    },
];

//! Windows Subsystem for Linux: the rows of the catalogue.

use super::{Area, Entry};
use crate::finding::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "wsl.two",
        area: Area::Wsl,
        status: Status::Ok,
        title: "WSL 2",
        cause: "WSL 2 runs a Linux kernel in a virtual machine that shares the GPU with Windows",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.one",
        area: Area::Wsl,
        status: Status::Error,
        title: "This is WSL 1",
        cause: "WSL 1 translates the calls of Linux programs for Windows: it has no Linux kernel and no GPU",
        remedy: Some("convert the distribution to WSL 2 from a Windows terminal; its files are kept"),
        fix: None,
        detects: &["wsl1-distro"],
    },
];

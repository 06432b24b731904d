//! Clock, services and the ties between Linux and Windows: rows of the catalogue.

use crate::catalogue::{Area, Entry};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "wsl.clock",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL's clock is wrong",
        cause: "WSL's clock stops while the PC sleeps: certificates are then not valid yet, and files lie \
                in the future",
        remedy: Some("set it by the clock of Windows; if it stays wrong, stop WSL from Windows"),
        fix: None,
        detects: &["wsl-clock-skew"],
    },
    Entry {
        id: "wsl.no-systemd",
        area: Area::Wsl,
        status: Status::Info,
        title: "Services do not run",
        cause: "this distribution starts without systemd, which only services such as Docker need; \
                training does not",
        remedy: Some("switch systemd on, if you need a service"),
        fix: None,
        detects: &["wsl-systemd-off"],
    },
    Entry {
        id: "wsl.interop-off",
        area: Area::Wsl,
        status: Status::Info,
        title: "Windows programs cannot be started from WSL",
        cause: "interop is off, or systemd removed it; the doctor then knows of Windows only what files on \
                its drive tell",
        remedy: Some(
            "nothing for training; remove `enabled=false` below [interop] in /etc/wsl.conf, or restart \
             WSL, to know more",
        ),
        fix: None,
        detects: &["wsl-interop-off"],
    },
    Entry {
        id: "wsl.windows-path",
        area: Area::Wsl,
        status: Status::Info,
        title: "Windows programs are in PATH",
        cause: "WSL appends the PATH of Windows: its programs may be found in place of those of Linux, and \
                a shell starts slowly",
        remedy: Some("set appendWindowsPath=false below [interop] in /etc/wsl.conf if that disturbs"),
        fix: None,
        detects: &["wsl-interop-path"],
    },
];

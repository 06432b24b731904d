//! Catalogue entries about WSL's clock, services and interop with Windows.

use crate::catalogue::{Area, Entry};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "wsl.clock",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL's clock is wrong",
        cause: "WSL's clock stops while the PC sleeps: certificates then appear not yet valid, and files appear to be from the future",
        remedy: Some("set it from the Windows clock; if it stays wrong, shut WSL down from Windows"),
        fix: None,
        detects: &["wsl-clock-skew"],
    },
    Entry {
        id: "wsl.no-systemd",
        area: Area::Wsl,
        status: Status::Info,
        title: "systemd is not running",
        cause: "this distribution starts without systemd, which services such as Docker need, but training \
                does not",
        remedy: Some("enable systemd if you need a service"),
        fix: None,
        detects: &["wsl-systemd-off"],
    },
    Entry {
        id: "wsl.interop-off",
        area: Area::Wsl,
        status: Status::Info,
        title: "Windows programs cannot be started from WSL",
        cause: "interop is off, or systemd removed it; the doctor can then read files on the Windows drive, but not query Windows",
        remedy: Some(
            "nothing for training; for a more complete report, remove `enabled=false` under \
                [interop] in /etc/wsl.conf, or restart WSL",
        ),
        fix: None,
        detects: &["wsl-interop-off"],
    },
    Entry {
        id: "wsl.windows-path",
        area: Area::Wsl,
        status: Status::Info,
        title: "Windows programs are in PATH",
        cause: "WSL appends the Windows PATH: Windows programs may be found instead of Linux ones, and \
                shells start slowly",
        remedy: Some("set appendWindowsPath=false under [interop] in /etc/wsl.conf if this causes problems"),
        fix: None,
        detects: &["wsl-interop-path"],
    },
    Entry {
        id: "wsl.user-session",
        area: Area::Wsl,
        status: Status::Info,
        title: "The user's systemd session did not start",
        cause: "rootless Docker and Podman, `systemctl --user` and lingering need it; training does not. All distributions share one \
                kernel and its control groups, so a distribution that starts later cannot open a session for the same user ID \
                (`Device or resource busy` in the journal)",
        remedy: Some(
            "if you need one of these and another distribution runs as well (also that of Docker Desktop or Podman), end all with \
             `wsl.exe --shutdown` and start this one first",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.root-user",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL runs as root instead of as its user",
        cause: "WSL forgets the user of a distribution that was imported (`wsl --import`, as when it is moved to another drive), and then \
                starts as root: data, environments and libtorch in the home folder of the user are not found, and new files belong to \
                root",
        remedy: Some(
            "name the user under [user] in /etc/wsl.conf, then end the distribution in a Windows terminal",
        ),
        fix: None,
        detects: &[],
    },
];

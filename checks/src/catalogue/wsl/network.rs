//! The network of WSL: rows of the catalogue.

use crate::catalogue::{Area, Entry};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "wsl.no-route",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL has no way to the network",
        cause: "a VPN that takes over Windows' routes, or a network mode that failed, leaves WSL without a \
                default route",
        remedy: Some(
            "stop WSL from Windows and start it again; with a VPN set `dnsTunneling=true` or another \
             `networkingMode` below [wsl2] in .wslconfig",
        ),
        fix: None,
        detects: &["wsl-vpn-no-net"],
    },
    Entry {
        id: "wsl.dns",
        area: Area::Wsl,
        status: Status::Error,
        title: "WSL finds no names of the network",
        cause: "downloads end with `Temporary failure in name resolution`",
        remedy: Some(
            "set `dnsTunneling=true` below [wsl2] in .wslconfig (Windows 11 22H2), then stop WSL from \
             Windows",
        ),
        fix: None,
        detects: &["wsl-dns-fail"],
    },
    Entry {
        id: "wsl.secure-access",
        area: Area::Wsl,
        status: Status::Warning,
        title: "Global Secure Access takes over name look-ups",
        cause: "names lead to temporary addresses that WSL cannot reach; WSL switches its DNS tunnel off \
                by itself",
        remedy: Some(
            "set `dnsTunneling=false` or `networkingMode=nat` below [wsl2] in .wslconfig, then stop WSL \
             from Windows",
        ),
        fix: None,
        detects: &["wsl-gsa-dns"],
    },
    Entry {
        id: "wsl.proxy",
        area: Area::Wsl,
        status: Status::Warning,
        title: "Windows uses a proxy and WSL does not",
        cause: "downloads hang or are refused behind a company's proxy",
        remedy: Some("set the proxy for this shell, or `autoProxy=true` below [wsl2] in .wslconfig"),
        fix: None,
        detects: &["wsl-proxy"],
    },
    Entry {
        id: "wsl.ipv6-disabled",
        area: Area::Wsl,
        status: Status::Warning,
        title: "IPv6 is switched off in the registry",
        cause: "WSL's network needs it: with DisabledComponents set it may have none",
        remedy: Some(
            "remove that value in Windows and restart; to avoid IPv6, clear it in the properties of the \
             network adapter instead",
        ),
        fix: None,
        detects: &["wsl-ipv6-disabled-registry"],
    },
    Entry {
        id: "wsl.nat",
        area: Area::Wsl,
        status: Status::Error,
        title: "Other machines cannot reach this WSL",
        cause: "by default WSL is behind NAT; forwarding one port does not do, since ranks meet at many",
        remedy: Some(
            "set `networkingMode=mirrored` below [wsl2] in .wslconfig (Windows 11 22H2), stop WSL from \
             Windows, and open the Hyper-V firewall in a PowerShell of Windows as administrator",
        ),
        fix: None,
        detects: &["wsl-nat-multinode"],
    },
    Entry {
        id: "wsl.firewall",
        area: Area::Wsl,
        status: Status::Error,
        title: "A firewall keeps other machines from WSL",
        cause: "mirrored networking has the Hyper-V firewall always on, and by default it lets nothing in",
        remedy: Some("open it for the ports of the run in a PowerShell of Windows as administrator"),
        fix: None,
        detects: &["wsl-hyperv-firewall"],
    },
    Entry {
        id: "wsl.port-of-windows",
        area: Area::Wsl,
        status: Status::Error,
        title: "A Windows program has the port of this run",
        cause: "with mirrored networking Linux and Windows share one set of ports",
        remedy: Some("end the program in Windows, or meet at another port"),
        fix: None,
        detects: &["wsl-mirrored-port-clash"],
    },
    Entry {
        id: "wsl.own-name",
        area: Area::Wsl,
        status: Status::Info,
        title: "This machine's name leads to itself alone",
        cause: "WSL writes /etc/hosts so (generateHosts): what finds its address by its name tells other \
                machines 127.0.1.1",
        remedy: Some("name the network interface for gloo and NCCL"),
        fix: None,
        detects: &["wsl-hostname-127"],
    },
];

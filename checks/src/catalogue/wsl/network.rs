//! Catalogue entries about the network of WSL.

use crate::catalogue::{Area, Entry};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "wsl.no-route",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL has no network connection",
        cause: "WSL has no default route, because a VPN took over Windows' routes or a network mode failed",
        remedy: Some(
            "shut WSL down from Windows and start it again; with a VPN, set `dnsTunneling=true` \
                or another `networkingMode` under [wsl2] in .wslconfig",
        ),
        fix: None,
        detects: &["wsl-vpn-no-net"],
    },
    Entry {
        id: "wsl.dns",
        area: Area::Wsl,
        status: Status::Error,
        title: "WSL cannot resolve host names",
        cause: "downloads fail with `Temporary failure in name resolution`",
        remedy: Some(
            "set `dnsTunneling=true` under [wsl2] in .wslconfig (Windows 11 22H2 or later), then shut WSL \
                down from Windows",
        ),
        fix: None,
        detects: &["wsl-dns-fail"],
    },
    Entry {
        id: "wsl.secure-access",
        area: Area::Wsl,
        status: Status::Warning,
        title: "Global Secure Access intercepts name resolution",
        cause: "host names resolve to temporary addresses that WSL cannot reach; WSL turns its DNS tunnel \
                off by itself",
        remedy: Some(
            "set `dnsTunneling=false` or `networkingMode=nat` under [wsl2] in .wslconfig, then \
                shut WSL down from Windows",
        ),
        fix: None,
        detects: &["wsl-gsa-dns"],
    },
    Entry {
        id: "wsl.proxy",
        area: Area::Wsl,
        status: Status::Warning,
        title: "Windows uses a proxy and WSL does not",
        cause: "behind a company's proxy, downloads hang or are refused",
        remedy: Some("set the proxy in this shell, or `autoProxy=true` under [wsl2] in .wslconfig"),
        fix: None,
        detects: &["wsl-proxy"],
    },
    Entry {
        id: "wsl.ipv6-disabled",
        area: Area::Wsl,
        status: Status::Warning,
        title: "IPv6 is disabled in the registry",
        cause: "WSL's network needs IPv6: with DisabledComponents set, WSL may have no network",
        remedy: Some(
            "delete that value in Windows and restart; to avoid IPv6, disable it in the network \
                adapter's properties instead",
        ),
        fix: None,
        detects: &["wsl-ipv6-disabled-registry"],
    },
    Entry {
        id: "wsl.nat",
        area: Area::Wsl,
        status: Status::Error,
        title: "Other machines cannot reach WSL on this PC",
        cause: "by default WSL is behind NAT; forwarding a port is not enough, because ranks connect \
                through many ports",
        remedy: Some(
            "set `networkingMode=mirrored` under [wsl2] in .wslconfig (Windows 11 22H2 or later), shut WSL \
                down from Windows, and open the Hyper-V firewall in PowerShell as administrator",
        ),
        fix: None,
        detects: &["wsl-nat-multinode"],
    },
    Entry {
        id: "wsl.firewall",
        area: Area::Wsl,
        status: Status::Error,
        title: "A firewall blocks connections from other machines to WSL",
        cause: "with mirrored networking the Hyper-V firewall is always on, and blocks incoming \
                connections by default",
        remedy: Some("open it for the run's ports in PowerShell as administrator"),
        fix: None,
        detects: &["wsl-hyperv-firewall"],
    },
    Entry {
        id: "wsl.port-of-windows",
        area: Area::Wsl,
        status: Status::Error,
        title: "A Windows program uses the run's port",
        cause: "with mirrored networking, Linux and Windows share the same ports",
        remedy: Some("stop the program in Windows, or use another port"),
        fix: None,
        detects: &["wsl-mirrored-port-clash"],
    },
    Entry {
        id: "wsl.own-name",
        area: Area::Wsl,
        status: Status::Info,
        title: "This machine's host name resolves to a loopback address",
        cause: "WSL writes 127.0.1.1 into /etc/hosts for the host name (generateHosts); programs that look \
                up their own name announce that address to other machines",
        remedy: Some(
            "nothing for `yolo`, which does not use the name; for PyTorch's own ranks, set GLOO_SOCKET_IFNAME",
        ),
        fix: None,
        detects: &["wsl-hostname-127"],
    },
    Entry {
        id: "wsl.mtu",
        area: Area::Wsl,
        status: Status::Info,
        title: "A VPN of Windows takes smaller packets than WSL sends",
        cause: "packets that are too large are lost in the VPN: names are resolved, and downloads hang",
        remedy: Some("let WSL send smaller packets"),
        fix: None,
        detects: &[],
    },
];

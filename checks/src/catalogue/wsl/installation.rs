//! Which WSL this is, and whether it can run: rows of the catalogue.

use crate::catalogue::{Area, Entry};
use crate::status::Status;

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
        cause: "WSL 1 translates the calls of Linux programs for Windows: it has no Linux kernel and no \
                GPU",
        remedy: Some("convert the distribution to WSL 2 from a Windows terminal; its files are kept"),
        fix: None,
        detects: &["wsl1-distro"],
    },
    Entry {
        id: "wsl.kernel-old",
        area: Area::Wsl,
        status: Status::Warning,
        title: "The kernel of WSL is old",
        cause: "WSL's kernel carries the way to the GPU: before 4.19.121 there is none, and older kernels \
                lose memory or freeze a training",
        remedy: Some("update WSL in a Windows terminal, then stop it, so that the new kernel starts"),
        fix: None,
        detects: &["wsl-kernel-old", "wsl-training-freeze"],
    },
    Entry {
        id: "wsl.release",
        area: Area::Wsl,
        status: Status::Ok,
        title: "The release of WSL",
        cause: "newer releases know more settings; the answer of wsl.exe is read in any language, and in \
                UTF-16",
        remedy: None,
        fix: None,
        detects: &["wsl-output-utf16"],
    },
    Entry {
        id: "wsl.inbox",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL is the one that came with Windows",
        cause: "it gets no updates of its own, and ignores newer settings such as systemd, \
                autoMemoryReclaim and mirrored networking",
        remedy: Some(
            "replace it by the WSL of the Microsoft Store in a Windows terminal; distributions stay",
        ),
        fix: None,
        detects: &["wsl-inbox-version"],
    },
    Entry {
        id: "wsl.virtualization-off",
        area: Area::Wsl,
        status: Status::Error,
        title: "Virtualization is off",
        cause: "WSL 2 is a virtual machine, and the firmware or Windows lets none start",
        remedy: Some(
            "switch on virtualization (Intel VT-x or AMD SVM) in the PC's firmware; if it is on, run these \
             in a Windows terminal as administrator and restart",
        ),
        fix: None,
        detects: &["wsl-virtualization-off"],
    },
    Entry {
        id: "wsl.feature-off",
        area: Area::Wsl,
        status: Status::Error,
        title: "WSL is not switched on in Windows",
        cause: "the Windows features that WSL 2 needs are off, or wait for a restart",
        remedy: Some("switch them on in a Windows terminal as administrator, then restart Windows"),
        fix: None,
        detects: &["wsl-optional-feature-off"],
    },
    Entry {
        id: "wsl.kernel-missing",
        area: Area::Wsl,
        status: Status::Error,
        title: "WSL 2 has no kernel yet",
        cause: "this Windows has WSL without its Linux kernel, which comes as an update",
        remedy: Some("fetch it in a Windows terminal"),
        fix: None,
        detects: &["wsl-kernel-component"],
    },
    Entry {
        id: "wsl.no-distribution",
        area: Area::Wsl,
        status: Status::Error,
        title: "There is no Linux distribution",
        cause: "WSL runs programs in a distribution, and this Windows user has none; another user, or the \
                administrator, has a list of their own",
        remedy: Some("install one in a Windows terminal, as the user who will train"),
        fix: None,
        detects: &["wsl-no-distro"],
    },
    Entry {
        id: "wsl.default-is-helper",
        area: Area::Wsl,
        status: Status::Warning,
        title: "`wsl` starts a distribution that is no place to work in",
        cause: "Docker Desktop and others keep a distribution for themselves, without a shell or packages",
        remedy: Some(
            "choose your own distribution in a Windows terminal, or name it each time with `wsl -d`",
        ),
        fix: None,
        detects: &["wsl-default-distro-docker"],
    },
    Entry {
        id: "wsl.new-distributions-one",
        area: Area::Wsl,
        status: Status::Warning,
        title: "New distributions come up as WSL 1",
        cause: "the default version of this PC is 1, which has no GPU",
        remedy: Some("set it to 2 in a Windows terminal"),
        fix: None,
        detects: &["wsl-default-version-1"],
    },
];

//! Catalogue entries about the version of WSL, and whether it can run.

use crate::catalogue::{Area, Entry};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "wsl.two",
        area: Area::Wsl,
        status: Status::Ok,
        title: "This is WSL 2",
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
        cause: "WSL 1 translates Linux system calls for Windows: it has no Linux kernel and no GPU support",
        remedy: Some("convert the distribution to WSL 2 from a Windows terminal; its files are kept"),
        fix: None,
        detects: &["wsl1-distro"],
    },
    Entry {
        id: "wsl.kernel-old",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL's kernel is old",
        cause: "GPU support needs kernel 4.19.121 or later, and old kernels leak memory or freeze during \
                training",
        remedy: Some("update WSL in a Windows terminal, then shut it down, so that the new kernel starts"),
        fix: None,
        detects: &["wsl-kernel-old", "wsl-training-freeze"],
    },
    Entry {
        id: "wsl.release",
        area: Area::Wsl,
        status: Status::Ok,
        title: "The WSL version is known",
        cause: "newer versions support more settings",
        remedy: None,
        fix: None,
        detects: &["wsl-output-utf16"],
    },
    Entry {
        id: "wsl.inbox",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL is the version built into Windows",
        cause: "it receives no updates of its own, and ignores newer settings such as systemd, \
                autoMemoryReclaim and mirrored networking",
        remedy: Some(
            "replace it with WSL from the Microsoft Store in a Windows terminal; distributions \
                are kept",
        ),
        fix: None,
        detects: &["wsl-inbox-version"],
    },
    Entry {
        id: "wsl.virtualization-off",
        area: Area::Wsl,
        status: Status::Error,
        title: "Virtualization is off",
        cause: "WSL 2 runs in a virtual machine, and the firmware or Windows does not allow one",
        remedy: Some(
            "enable virtualization (Intel VT-x or AMD SVM) in the PC's firmware; if it is \
                enabled, run `bcdedit /set hypervisorlaunchtype Auto` and `wsl.exe --install --no-distribution` \
                in a Windows terminal as administrator and restart",
        ),
        fix: None,
        detects: &["wsl-virtualization-off"],
    },
    Entry {
        id: "wsl.feature-off",
        area: Area::Wsl,
        status: Status::Error,
        title: "WSL is not enabled in Windows",
        cause: "the Windows features that WSL 2 needs are off, or need a restart",
        remedy: Some("enable them in a Windows terminal as administrator, then restart Windows"),
        fix: None,
        detects: &["wsl-optional-feature-off"],
    },
    Entry {
        id: "wsl.damaged",
        area: Area::Wsl,
        status: Status::Error,
        title: "The installation of WSL is damaged",
        cause: "wsl.exe starts, but what it belongs to is missing (`REGDB_E_CLASSNOTREG`, class not registered): an \
                installation or update of WSL was not completed",
        remedy: Some(
            "run the installer (.msi) from https://github.com/microsoft/WSL/releases, which repairs WSL and keeps \
             distributions, from an administrator account; then install a distribution if there is none",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.service-disabled",
        area: Area::Wsl,
        status: Status::Error,
        title: "A Windows service that WSL needs is disabled",
        cause: "WSL needs some services of Windows; programs that promise a faster Windows disable them, and WSL then fails with \
                0x80070422 or 0x80070426",
        remedy: Some(
            "let the service start again, in a Windows terminal as administrator; in the list of services \
             (services.msc), set its startup type to Manual",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.kernel-missing",
        area: Area::Wsl,
        status: Status::Error,
        title: "The WSL 2 kernel is not installed",
        cause: "this Windows has WSL without the Linux kernel, which is a separate update",
        remedy: Some("install it in a Windows terminal"),
        fix: None,
        detects: &["wsl-kernel-component"],
    },
    Entry {
        id: "wsl.no-distribution",
        area: Area::Wsl,
        status: Status::Error,
        title: "No Linux distribution is installed",
        cause: "WSL runs programs in a distribution, and this Windows user has none; each user, \
                administrators included, has a separate list",
        remedy: Some("install one in a Windows terminal, as the user who will train"),
        fix: None,
        detects: &["wsl-no-distro"],
    },
    Entry {
        id: "wsl.default-is-helper",
        area: Area::Wsl,
        status: Status::Warning,
        title: "The default distribution is not meant for users",
        cause: "Docker Desktop and others install distributions for internal use, without a shell or \
                packages",
        remedy: Some(
            "set your own distribution as the default in a Windows terminal, or name it each time \
                with `wsl -d`",
        ),
        fix: None,
        detects: &["wsl-default-distro-docker"],
    },
    Entry {
        id: "wsl.windows-old",
        area: Area::Wsl,
        status: Status::Error,
        title: "This Windows is too old for today's WSL 2",
        cause: "`wsl --install` and today's WSL 2 need Windows 10 version 2004 (build 19041) or Windows Server 2022; GPUs in WSL \
            need Windows 10 21H2, Windows 11 or Windows Server 2025",
        remedy: Some("update Windows to 22H2 or Windows 11 with Windows Update"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.new-distributions-one",
        area: Area::Wsl,
        status: Status::Warning,
        title: "New distributions are created as WSL 1",
        cause: "the default version on this PC is 1, which has no GPU support",
        remedy: Some("set it to 2 in a Windows terminal"),
        fix: None,
        detects: &["wsl-default-version-1"],
    },
];

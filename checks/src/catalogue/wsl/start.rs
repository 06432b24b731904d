//! Catalogue entries about distributions and virtual machines that do not start.

use crate::catalogue::{Area, Entry};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "wsl.disk-missing",
        area: Area::Wsl,
        status: Status::Error,
        title: "The disk of a distribution does not exist",
        cause: "a distribution of WSL 2 is one file, ext4.vhdx, at a place that Windows remembers; it was moved or deleted, or \
                its drive is not connected or has another letter",
        remedy: Some(
            "connect the drive and give it its old letter (Disk Management), or move the file back; a file that is elsewhere \
             can be registered there under a name that no distribution has, with `wsl.exe --import-in-place NEW-NAME FILE`; \
             do not remove the distribution before the \
             file is found",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.disk-broken",
        area: Area::Wsl,
        status: Status::Error,
        title: "The disk of a distribution is damaged",
        cause: "Windows crashed or was switched off while the disk was in use, its drive was full, or the drive fails",
        remedy: Some(
            "copy ext4.vhdx to another drive; then attach it to another distribution (install one if there is none) in a \
             Windows terminal as administrator, find it with lsblk by its size, and check it with e2fsck; do not remove the \
             distribution, which deletes the file",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.disk-unusable",
        area: Area::Wsl,
        status: Status::Error,
        title: "Windows cannot open the disk of a distribution",
        cause: "the file is there, but write-protected, compressed, encrypted, in use, or on a drive that cannot hold it",
        remedy: Some("remove what prevents it, then shut WSL down and start it again"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.access-denied",
        area: Area::Wsl,
        status: Status::Error,
        title: "Windows denies WSL access to its files",
        cause: "the disk belongs to another user or was copied without its rights, or a virus scanner, a backup or Hyper-V \
                holds it; updates of Windows Defender were reported to do so for some minutes",
        remedy: Some(
            "wait some minutes, shut WSL down and start it again; give your user full control of the file (Properties, \
             Security, or icacls in PowerShell); close Hyper-V and backup programs, and exclude the file's folder in \
             the virus scanner",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.start-timeout",
        area: Area::Wsl,
        status: Status::Error,
        title: "WSL's virtual machine does not answer",
        cause: "Windows' Virtual Machine Platform is off or hangs after sleep or an update, or the machine waits for \
                something, such as the repair of a disk, or a hosts file of Windows with many thousand lines",
        remedy: Some(
            "shut WSL down and start it again, then restart Windows; if that does not help, turn the Virtual Machine Platform \
             on in a Windows terminal as administrator, restart Windows and update WSL; shorten \
             C:\\Windows\\System32\\drivers\\etc\\hosts if it is larger than half a megabyte",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.no-answer",
        area: Area::Wsl,
        status: Status::Error,
        title: "WSL's service is stuck",
        cause: "the service of WSL lost its virtual machine, as happens after sleep, when memory or a disk ran full, or after a \
                long run",
        remedy: Some(
            "shut WSL down and start it again; if the command does not return, end the service in a Windows terminal as \
             administrator with `taskkill.exe /f /im wslservice.exe`, or restart Windows; if it comes back for one \
             distribution only, free space on the Windows drive and check that distribution's disk with e2fsck",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.network-broken",
        area: Area::Wsl,
        status: Status::Error,
        title: "Windows cannot set up WSL's network",
        cause: "the Host Network Service (HNS) of Windows fails, often after an update, or because of a VPN, VMware's bridge or \
                Npcap",
        remedy: Some(
            "restart the Host Network Service in a Windows terminal as administrator, then Windows; remove VMware's bridge and \
             Npcap from the network adapters, and end VPN programs; to start WSL without NAT meanwhile, write \
             `networkingMode=virtioproxy` or `networkingMode=none` under [wsl2] in .wslconfig",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.gpu-not-configured",
        area: Area::Wsl,
        status: Status::Error,
        title: "Windows cannot give WSL's virtual machine the GPU",
        cause: "the files of a GPU driver that Windows remembers do not exist, as after a new card or driver",
        remedy: Some(
            "install NVIDIA's driver for Windows again as a clean installation, remove adapters that are no longer there in \
             Device Manager (View, Show hidden devices, Display adapters), and restart Windows; to start WSL without a GPU \
             meanwhile, write `gpuSupport=false` under [wsl2] in .wslconfig",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.vm-crashed",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL's virtual machine crashed",
        cause: "its Linux kernel stopped with an error, which ends every distribution and every run; some kernels do so under \
                load, with little memory, or with mirrored networking",
        remedy: Some(
            "update WSL and restart Windows; continue the run with --resume, with less memory (no --cache ram, fewer \
             --workers); with `networkingMode=mirrored` in .wslconfig, try `nat`; if it crashes since an update, try \
             `wsl --update --pre-release` or the previous .msi of https://github.com/microsoft/WSL/releases",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.no-memory-to-start",
        area: Area::Wsl,
        status: Status::Error,
        title: "Windows has no memory for WSL",
        cause: "other programs use the PC's memory, `memory=` in .wslconfig is higher than what the PC has, or its page file is \
                off or full",
        remedy: Some(
            "close programs or restart Windows; lower `memory=` under [wsl2] in .wslconfig; let Windows manage the page file \
             (SystemPropertiesPerformance.exe, Advanced, Virtual memory)",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.custom-kernel-missing",
        area: Area::Wsl,
        status: Status::Error,
        title: "A file that .wslconfig names does not exist",
        cause: "`kernel=`, `kernelModules=` and `systemDistro=` under [wsl2] must be a full path with doubled backslashes \
            and without variables such as %USERPROFILE%",
        remedy: Some("correct the path, or remove the line to use WSL's own kernel, then shut WSL down"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.download-blocked",
        area: Area::Wsl,
        status: Status::Error,
        title: "Windows cannot download WSL or a distribution",
        cause: "`wsl --install` and `wsl --update` use the Microsoft Store, Windows' update servers and \
                raw.githubusercontent.com; a policy, an update server of the company (WSUS), a proxy or the provider blocks one \
                of them",
        remedy: Some(
            "download from the web instead of the store; if that is blocked too, download the .msi from \
             https://github.com/microsoft/WSL/releases and Ubuntu's .wsl file of https://releases.ubuntu.com/24.04 elsewhere, \
             and install them: `wsl --install --from-file FILE` (WSL 2.4.4 or later)",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.other-account",
        area: Area::Wsl,
        status: Status::Error,
        title: "This Windows account has no access to WSL",
        cause: "distributions belong to the user who installed them; services, scheduled tasks and runners of CI use another \
                account, often SYSTEM, in which WSL does not start",
        remedy: Some(
            "let the service or task run as the user who installed the distribution (its properties, `Log on` or `Run whether \
             user is logged on or not`)",
        ),
        fix: None,
        detects: &[],
    },
];

//! Catalogue entries about the operating system and the CPU.

use super::{Area, Entry, Fix};
use crate::status::Status;

/// What is reported when a check fails because of a bug.
pub(crate) const CHECK_FAILED: Entry = Entry {
    id: "system.check-failed",
    area: Area::System,
    status: Status::Warning,
    title: "A check failed",
    cause: "this is a bug in yolo, not a problem with this machine; this check gave no result",
    remedy: Some(
        "report it, and attach the file that `yolo doctor --record FILE` writes; private data is redacted",
    ),
    fix: None,
    detects: &[],
};

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "system.platform",
        area: Area::System,
        status: Status::Ok,
        title: "This operating system and CPU are supported",
        cause: "libtorch is available for 64-bit x86 Linux and Windows",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "system.unsupported",
        area: Area::System,
        status: Status::Error,
        title: "yolo does not support this system",
        cause: "yolo runs libtorch's build for 64-bit x86 Linux; on Windows, in WSL 2",
        remedy: Some("train on another machine: 64-bit x86 with Linux, or with WSL 2 on Windows"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "system.clock",
        area: Area::System,
        status: Status::Error,
        title: "The clock is wrong",
        cause: "with a clock that is years off, no certificate is valid, so libtorch, weights and data sets cannot \
                be downloaded; an empty battery on the main board is the usual reason",
        remedy: Some("set the clock, and let it follow a time server (NTP)"),
        fix: None,
        detects: &[],
    },
    CHECK_FAILED,
    Entry {
        id: "system.open-files",
        area: Area::System,
        status: Status::Warning,
        title: "The limit on open files is low",
        cause: "each rank opens images, libraries and sockets to the other ranks; at the limit it fails \
                with \"Too many open files\"",
        remedy: Some("raise the limit in this shell before the run"),
        fix: None,
        detects: &["nofile-limit"],
    },
    Entry {
        id: "system.locked-memory",
        area: Area::System,
        status: Status::Warning,
        title: "The limit on locked memory is low",
        cause: "InfiniBand adapters need locked memory, which is never swapped out; with a low limit, NCCL cannot register \
            its buffers",
        remedy: Some("raise the limit"),
        fix: None,
        detects: &["docker-memlock"],
    },
    Entry {
        id: "system.address-space",
        area: Area::System,
        status: Status::Warning,
        title: "The address space of a process is limited",
        cause: "CUDA reserves as many addresses as the machine and its GPUs have memory together, without using that \
                memory; under such a limit its first call fails with `out of memory` although the GPU is empty",
        remedy: Some("remove the limit in this shell, also where a profile such as ~/.bashrc sets it"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "system.processes",
        area: Area::System,
        status: Status::Warning,
        title: "The limit on processes and threads is low",
        cause: "ranks have threads for loading images, for computing and for communication; at the limit they fail \
                with `Resource temporarily unavailable`",
        remedy: Some("raise the limit in this shell before the run, or use fewer ranks and --workers"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "system.stack",
        area: Area::System,
        status: Status::Info,
        title: "The stack size is unlimited",
        cause: "NCCL warns that an unlimited stack is unsafe and uses its own size instead; this is \
                harmless",
        remedy: None,
        fix: None,
        detects: &["stack-limit-unsafe"],
    },
    Entry {
        id: "system.left-ranks",
        area: Area::System,
        status: Status::Warning,
        title: "Ranks of an earlier run are still running",
        cause: "a rank that is left holds GPU memory and ports, and may connect to the ranks of the next run",
        remedy: Some("stop what is left of that run"),
        fix: Some(Fix {
            does: "stop your own ranks whose run is over: SIGTERM first, then SIGKILL",
            undo: "nothing to undo: their run is over",
        }),
        detects: &["zombie-ranks", "store-barrier-worker-count"],
    },
    Entry {
        id: "system.stuck-process",
        area: Area::System,
        status: Status::Warning,
        title: "A process is stuck in the driver",
        cause: "it was killed but still waits in the kernel, usually for a GPU; until it ends, it keeps \
                its memory and devices",
        remedy: Some("restart the machine; nothing else frees what the process holds"),
        fix: None,
        detects: &["unkillable-d-state"],
    },
    Entry {
        id: "system.remove-ipc",
        area: Area::System,
        status: Status::Info,
        title: "Shared memory is removed at logout",
        cause: "systemd removes a user's shared memory when the user's last session closes; ranks that are \
                still running then die with \"Bus error\"",
        remedy: Some("enable lingering for this user, so that processes outlive the session"),
        fix: None,
        detects: &["systemd-removeipc"],
    },
    Entry {
        id: "system.cpu-time",
        area: Area::System,
        status: Status::Warning,
        title: "The limit on CPU time is low",
        cause: "the kernel ends a process that has used so much CPU time (`CPU time limit exceeded`); that of all threads of a \
                rank counts, so eight of them use an hour in minutes",
        remedy: Some("raise the limit in the shell that starts the run"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "system.file-size",
        area: Area::System,
        status: Status::Warning,
        title: "The limit on the size of files is low",
        cause: "the kernel ends a process that makes a file larger than this (`File size limit exceeded`): a checkpoint or a \
                download",
        remedy: Some("raise the limit in the shell that starts the run"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "system.numa",
        area: Area::System,
        status: Status::Warning,
        title: "A GPU is attached to a NUMA node that this process may not use",
        cause: "all traffic to and from this GPU crosses between CPU sockets, which is slower",
        remedy: Some("request CPUs on that NUMA node from the batch system or container, or use other GPUs"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "system.numa-uneven",
        area: Area::System,
        status: Status::Warning,
        title: "A GPU is attached to a NUMA node without CPUs or memory",
        cause: "ranks on GPUs without a direct path share memory of the machine; NCCL asks the driver for it at the GPU's own \
                node, which drivers before 595 refuse if the node lacks CPUs or memory: ranks fail with `Error while attaching \
                to shared memory segment`, or crash",
        remedy: Some(
            "let NCCL share memory in the older way, which `yolo` does by itself; or plug memory into the sockets of both CPUs, give \
             the virtual machine or the container the CPUs of all nodes, or install driver 595 or later",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "system.no-avx2",
        area: Area::System,
        status: Status::Warning,
        title: "The CPU has no AVX2",
        cause: "libtorch and the data loader then compute on four numbers at once instead of eight; in one measurement, \
                training on the CPU took almost three times the CPU time, and on a GPU the loader may become the limit",
        remedy: Some("train on a machine with a newer CPU, or accept slower runs"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "system.cpu-busy",
        area: Area::System,
        status: Status::Warning,
        title: "Other programs use the CPU",
        cause: "loading images and giving work to the GPU then wait for a core, and the GPU waits for them",
        remedy: Some(
            "wait until the other programs have ended, or lower their priority with renice, or bind them to some of the \
             cores with taskset",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "system.battery",
        area: Area::System,
        status: Status::Warning,
        title: "A laptop runs on its battery",
        cause: "on battery power, laptops give the GPU and the CPU a fraction of their power, and a long run outlasts the battery",
        remedy: Some("connect the charger; if the battery drains anyway, use a stronger one"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "system.unclean-restart",
        area: Area::System,
        status: Status::Warning,
        title: "The machine went off without shutting down",
        cause: "a machine that switches off under load has no time to write why: usually its power supply cannot deliver \
                the short peaks of the GPU, or a plug of the card is loose; heat and power cuts do the same",
        remedy: Some(
            "lower the power limit of the GPU (`nvidia-smi -q -d POWER` names the range that a card allows), or its highest clock \
             (`sudo nvidia-smi -lgc 0,1500`), which cuts the peaks; use a cable of its own for each power socket of the \
             card, look at the temperatures, and if it happens again \
             use a stronger power supply; then continue the run with `yolo train --resume`",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "system.hardware-errors",
        area: Area::System,
        status: Status::Warning,
        title: "The CPU or the memory reports errors",
        cause: "a defective memory module or CPU, or one that runs too fast or with too little voltage, computes wrong \
                numbers, ends programs with \"Segmentation fault\", or restarts the machine",
        remedy: Some(
            "set the firmware (BIOS) to its defaults, without overclocking, XMP or EXPO and without lower voltages, and update \
             it; test the memory with memtest86+ for a night, module by module, and replace the module that fails; if the \
             memory is good, it is the CPU or the power supply",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "system.cpu-unstable",
        area: Area::System,
        status: Status::Info,
        title: "The CPU has a microcode that makes it unstable",
        cause: "Intel's fast desktop CPUs of the 13th and 14th generation ask for too high a voltage until microcode 0x12b, \
                which damages them over time: programs then crash under load, with \"Segmentation fault\" or wrong results",
        remedy: Some(
            "update the firmware (BIOS) of the board to its newest, with microcode 0x12f or at least 0x12b, and choose \"Intel \
            Default Settings\" in it; if programs crash afterwards too, the CPU is damaged: Intel replaces it under an extended \
            warranty",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "system.sleeps",
        area: Area::System,
        status: Status::Warning,
        title: "The machine goes to sleep during a run",
        cause: "a desktop puts a machine to sleep that nobody uses, also while a program computes or over SSH; the run then \
                stands still, and CUDA often fails after the machine wakes up",
        remedy: Some(
            "start the run so that the machine stays awake, or switch the automatic suspend off: in the desktop's settings \
             (Power), on a server with `sudo systemctl mask sleep.target suspend.target hibernate.target hybrid-sleep.target`; the \
             login screen of GNOME has a setting of its own, `sudo -u gdm dbus-run-session gsettings set …` (the user is Debian-gdm \
             on Debian); a laptop whose lid is closed stays awake with `HandleLidSwitch=ignore` in /etc/systemd/logind.conf, after \
             a restart or `sudo systemctl kill -s HUP systemd-logind`",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "system.session-ends",
        area: Area::System,
        status: Status::Warning,
        title: "A run ends with this session",
        cause: "programs that were started in a session end with it, when the connection breaks off or the window is closed",
        remedy: Some(
            "start the run in `tmux` or `screen`, to which you can return after the connection was lost: `tmux new -s train`, \
             later `tmux attach -t train`",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "system.restart-planned",
        area: Area::System,
        status: Status::Warning,
        title: "A restart of the machine is planned",
        cause: "a run ends with the machine, and loses the epoch that it is in",
        remedy: Some(
            "restart the machine before the run, or switch the automatic restart off: `Unattended-Upgrade::Automatic-Reboot \
             \"false\";` in /etc/apt/apt.conf.d/50unattended-upgrades",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "system.cpu-slow",
        area: Area::System,
        status: Status::Warning,
        title: "The CPU runs slower than it can",
        cause: "loading images and giving work to the GPU then take longer, and the GPU waits for them",
        remedy: Some("let the CPU run at its full speed"),
        fix: None,
        detects: &[],
    },
];

//! Catalogue entries about the memory and settings of WSL.

use crate::catalogue::{Area, Entry, Fix};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "wsl.memory",
        area: Area::Wsl,
        status: Status::Ok,
        title: "WSL has enough memory",
        cause: "WSL's virtual machine has part of the PC's memory, half by default",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.memory-low",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL has too little memory for the run",
        cause: "by default WSL gets half of the PC's memory (at most 8 GB in older versions); beyond that, \
                Linux kills a rank without an error message",
        remedy: Some(
            "give WSL more memory with `memory=` under [wsl2] in .wslconfig, then shut WSL down \
                from Windows; or train with fewer ranks, fewer --workers or smaller images",
        ),
        fix: Some(Fix {
            does: "write the values under [wsl2] in .wslconfig",
            undo: "`yolo undo` restores .wslconfig",
        }),
        detects: &["wsl-mem-default-half"],
    },
    Entry {
        id: "wsl.config",
        area: Area::Wsl,
        status: Status::Ok,
        title: ".wslconfig is valid",
        cause: "WSL accepts every line of it",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.config-unit",
        area: Area::Wsl,
        status: Status::Error,
        title: "A size in .wslconfig has no unit",
        cause: "without a unit WSL reads the number as bytes, and raises it to the minimum of 256 MB, which is too little to train",
        remedy: Some(
            "write the unit in capitals without a space, such as `memory=8GB`, then shut WSL down \
                from Windows",
        ),
        fix: Some(Fix { does: "add the missing unit", undo: "`yolo undo` restores .wslconfig" }),
        detects: &["wslconfig-unit-missing"],
    },
    Entry {
        id: "wsl.config-encoding",
        area: Area::Wsl,
        status: Status::Warning,
        title: ".wslconfig is not plain UTF-8",
        cause: "some versions of WSL silently ignore a file in UTF-16 or with a byte order mark, as \
                PowerShell and Notepad write it",
        remedy: Some(
            "save it as UTF-8 without a byte order mark (Notepad: Save as, encoding UTF-8), then \
                shut WSL down from Windows",
        ),
        fix: Some(Fix { does: "save the same text as UTF-8", undo: "`yolo undo` restores .wslconfig" }),
        detects: &["wslconfig-wrong-place"],
    },
    Entry {
        id: "wsl.config-path",
        area: Area::Wsl,
        status: Status::Warning,
        title: "A path in .wslconfig has single backslashes",
        cause: "a backslash escapes the character after it, so WSL skips the line or looks for another \
                path",
        remedy: Some("double each backslash, as in `C:\\\\swap.vhdx`, then shut WSL down from Windows"),
        fix: None,
        detects: &["wslconfig-backslash"],
    },
    Entry {
        id: "wsl.config-ignored",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL ignores part of .wslconfig",
        cause: "WSL skips keys that are in the wrong section, misspelled or set to an invalid \
                value",
        remedy: Some("correct the lines, then shut WSL down from Windows"),
        fix: None,
        detects: &["wslconfig-wrong-place"],
    },
    Entry {
        id: "wsl.config-moved",
        area: Area::Wsl,
        status: Status::Info,
        title: "A setting has moved to [wsl2]",
        cause: "the setting used to be experimental; WSL still reads it in its old section",
        remedy: Some("move it to [wsl2] when convenient"),
        fix: None,
        detects: &["wslconfig-experimental-moved"],
    },
    Entry {
        id: "wsl.conf-ignored",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL ignores part of /etc/wsl.conf",
        cause: "WSL skips unknown settings, and stops reading at a malformed line",
        remedy: Some("correct the lines, then shut WSL down from Windows"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.config-misplaced",
        area: Area::Wsl,
        status: Status::Warning,
        title: "The WSL settings file is in the wrong folder",
        cause: "WSL only reads .wslconfig in the Windows user's home folder",
        remedy: Some("move it there, then shut WSL down from Windows"),
        fix: None,
        detects: &["wslconfig-wrong-place"],
    },
    Entry {
        id: "wsl.restart-due",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL is still running with older settings",
        cause: "WSL reads .wslconfig when its virtual machine starts; closing a terminal does not stop it",
        remedy: Some(
            "shut WSL down from Windows, which stops everything that runs in it, wait eight \
                seconds and start it again",
        ),
        fix: None,
        detects: &["wslconfig-wrong-place"],
    },
    Entry {
        id: "wsl.config-not-taken",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL did not apply its settings",
        cause: "WSL was started after the file was written, but uses other values: it may read another \
                Windows user's file, or the PC cannot provide them",
        remedy: Some(
            "check that this .wslconfig is in the home folder of the Windows user who starts WSL, \
                then shut WSL down from Windows",
        ),
        fix: None,
        detects: &["wslconfig-wrong-place"],
    },
    Entry {
        id: "wsl.memory-greedy",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL may take nearly all of the PC's memory",
        cause: "Windows needs some memory too: otherwise the whole PC swaps and appears frozen while WSL \
                runs",
        remedy: Some("lower `memory=`, then shut WSL down from Windows"),
        fix: Some(Fix {
            does: "write the values under [wsl2] in .wslconfig",
            undo: "`yolo undo` restores .wslconfig",
        }),
        detects: &["wslconfig-too-big"],
    },
    Entry {
        id: "wsl.swap-huge",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL's swap file does not fit on its disk",
        cause: "the file grows as it is used; when the disk is full, WSL and Windows fail",
        remedy: Some(
            "lower `swap=`, or set `swapFile=` to a file on a larger drive, then shut WSL down \
                from Windows",
        ),
        fix: Some(Fix {
            does: "write the values under [wsl2] in .wslconfig",
            undo: "`yolo undo` restores .wslconfig",
        }),
        detects: &["wslconfig-swap-huge"],
    },
    Entry {
        id: "wsl.processors-low",
        area: Area::Wsl,
        status: Status::Info,
        title: "WSL has few CPUs",
        cause: "CPUs load and augment the images: with few of them, the GPU waits",
        remedy: Some(
            "raise `processors=`, or remove it to give WSL all CPUs; or train with fewer \
                --workers",
        ),
        fix: None,
        detects: &["wsl-processors-low"],
    },
    Entry {
        id: "wsl.memory-reclaim",
        area: Area::Wsl,
        status: Status::Info,
        title: "WSL returns cached files to Windows",
        cause: "after a pause, a data set that would fit in memory is read from disk again",
        remedy: Some("set autoMemoryReclaim=disabled on a PC that mostly trains"),
        fix: None,
        detects: &["wsl-memory-reclaim"],
    },
    Entry {
        id: "wsl.idle-short",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL stops soon after its last terminal closes",
        cause: "training in the background stops with it",
        remedy: Some("raise the timeout, or set it to -1, then shut WSL down from Windows"),
        fix: None,
        detects: &["wsl-idle-shutdown"],
    },
    Entry {
        id: "wsl.idle",
        area: Area::Wsl,
        status: Status::Info,
        title: "WSL stops when no terminal is open",
        cause: "without an open Windows terminal, WSL stops a distribution after 15 s and its virtual \
                machine after 60 s, even if training runs in tmux, screen or over SSH",
        remedy: Some(
            "keep a Windows terminal open, or set instanceIdleTimeout=-1 under [general] and \
                vmIdleTimeout=-1 under [wsl2] in .wslconfig",
        ),
        fix: None,
        detects: &["wsl-idle-shutdown"],
    },
    Entry {
        id: "wsl.mirrored-unsupported",
        area: Area::Wsl,
        status: Status::Warning,
        title: "This Windows does not support mirrored networking",
        cause: "mirrored networking needs Windows 11 22H2 or later; WSL prints a message and uses NAT instead",
        remedy: Some("remove the line; to train on several machines, use Windows 11 22H2 or later, or Linux"),
        fix: None,
        detects: &["wsl-mirrored-unsupported"],
    },
    Entry {
        id: "wsl.local-ports",
        area: Area::Wsl,
        status: Status::Warning,
        title: "Linux uses ports that Windows did not reserve",
        cause: "with mirrored networking WSL and Windows share one address, and Windows passes on only the answers to ports that \
                it reserved for WSL: other connections hang or fail without a message, and so do downloads and runs on several \
                machines",
        remedy: Some("remove the setting of net.ipv4.ip_local_port_range, and start WSL again"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.processors-half",
        area: Area::Wsl,
        status: Status::Info,
        title: "WSL has one group of the processors",
        cause: "Windows divides more than 64 processors into groups, and the virtual machine of WSL gets one of them; no setting of \
                WSL changes that",
        remedy: Some(
            "use as many workers as WSL has processors; Linux installed directly on the PC uses all of them, and with at most 64 (turn \
             off SMT in the firmware) there is only one group",
        ),
        fix: None,
        detects: &[],
    },
];

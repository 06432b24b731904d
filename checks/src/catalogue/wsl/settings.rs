//! Memory and the settings of WSL: rows of the catalogue.

use crate::catalogue::{Area, Entry, Fix};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "wsl.memory",
        area: Area::Wsl,
        status: Status::Ok,
        title: "The memory of WSL",
        cause: "WSL's virtual machine has a part of the PC's memory, by default half",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.memory-low",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL has too little memory for the run",
        cause: "WSL takes half of the PC's memory by default (older releases 8 GB at most); a rank beyond \
                it is killed without a word",
        remedy: Some(
            "give WSL more with `memory=` below [wsl2] in .wslconfig, then stop WSL from Windows; or train \
             with fewer ranks, fewer --workers or smaller images",
        ),
        fix: Some(Fix {
            does: "write the values below [wsl2] into .wslconfig",
            undo: "copy the backup that it names back over .wslconfig",
        }),
        detects: &["wsl-mem-default-half"],
    },
    Entry {
        id: "wsl.config",
        area: Area::Wsl,
        status: Status::Ok,
        title: "WSL can read .wslconfig",
        cause: "each line of it is one that WSL takes",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.config-unit",
        area: Area::Wsl,
        status: Status::Error,
        title: "A size in .wslconfig has no unit",
        cause: "without a unit WSL reads bytes, and raises too little memory to 256 MB, in which \
                everything is killed",
        remedy: Some(
            "write the unit in capitals without a space, such as `memory=8GB`, then stop WSL from Windows",
        ),
        fix: Some(Fix {
            does: "add the unit that is missing",
            undo: "copy the backup that it names back over .wslconfig",
        }),
        detects: &["wslconfig-unit-missing"],
    },
    Entry {
        id: "wsl.config-encoding",
        area: Area::Wsl,
        status: Status::Warning,
        title: ".wslconfig is not plain UTF-8",
        cause: "several releases of WSL ignore a file in UTF-16 or with a byte order mark, as PowerShell \
                and Notepad write it, without a word",
        remedy: Some(
            "save it as UTF-8 without a mark (Notepad: Save as, encoding UTF-8), then stop WSL from \
             Windows",
        ),
        fix: Some(Fix {
            does: "write the same text as UTF-8",
            undo: "copy the backup that it names back over .wslconfig",
        }),
        detects: &["wslconfig-wrong-place"],
    },
    Entry {
        id: "wsl.config-path",
        area: Area::Wsl,
        status: Status::Warning,
        title: "A path in .wslconfig has single backslashes",
        cause: "a backslash escapes the letter behind it, so that WSL skips the line or looks for another \
                path",
        remedy: Some("double each backslash, as in `C:\\\\swap.vhdx`, then stop WSL from Windows"),
        fix: None,
        detects: &["wslconfig-backslash"],
    },
    Entry {
        id: "wsl.config-ignored",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL ignores a part of .wslconfig",
        cause: "WSL skips without a word what stands in a wrong section, is misspelled or has a value that \
                it does not take",
        remedy: Some("mend the lines, then stop WSL from Windows"),
        fix: None,
        detects: &["wslconfig-wrong-place"],
    },
    Entry {
        id: "wsl.config-moved",
        area: Area::Wsl,
        status: Status::Info,
        title: "A setting has moved to [wsl2]",
        cause: "it was experimental once; WSL still reads it in its old place",
        remedy: Some("move it below [wsl2] when it suits you"),
        fix: None,
        detects: &["wslconfig-experimental-moved"],
    },
    Entry {
        id: "wsl.conf-ignored",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL ignores a part of /etc/wsl.conf",
        cause: "WSL skips what it does not know there, and reads nothing after a broken line",
        remedy: Some("mend the lines, then stop WSL from Windows"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "wsl.config-misplaced",
        area: Area::Wsl,
        status: Status::Warning,
        title: "The settings of WSL are where it does not look",
        cause: "WSL reads .wslconfig in the folder of the Windows user and nowhere else",
        remedy: Some("move them there, then stop WSL from Windows"),
        fix: None,
        detects: &["wslconfig-wrong-place"],
    },
    Entry {
        id: "wsl.restart-due",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL still runs with older settings",
        cause: "WSL reads .wslconfig when its virtual machine starts; closing a terminal does not stop it",
        remedy: Some(
            "stop WSL from Windows, which ends all that runs in it, and start it again after eight seconds",
        ),
        fix: None,
        detects: &["wslconfig-wrong-place"],
    },
    Entry {
        id: "wsl.config-not-taken",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL did not take its settings",
        cause: "WSL has started since the file was written, and has other values: it may read the file of \
                another Windows user, or the PC cannot give them",
        remedy: Some(
            "see that this .wslconfig is in the folder of the Windows user who starts WSL, then stop WSL \
             from Windows",
        ),
        fix: None,
        detects: &["wslconfig-wrong-place"],
    },
    Entry {
        id: "wsl.memory-greedy",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL may take nearly all memory of the PC",
        cause: "Windows needs a part: without it the whole PC swaps and seems frozen while WSL runs",
        remedy: Some("lower `memory=`, then stop WSL from Windows"),
        fix: Some(Fix {
            does: "write the values below [wsl2] into .wslconfig",
            undo: "copy the backup that it names back over .wslconfig",
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
            "lower `swap=`, or name a file on a larger drive with `swapFile=`, then stop WSL from Windows",
        ),
        fix: Some(Fix {
            does: "write the values below [wsl2] into .wslconfig",
            undo: "copy the backup that it names back over .wslconfig",
        }),
        detects: &["wslconfig-swap-huge"],
    },
    Entry {
        id: "wsl.processors-low",
        area: Area::Wsl,
        status: Status::Info,
        title: "WSL has few processors",
        cause: "images are loaded and augmented by processors: with fewer of them the GPU waits",
        remedy: Some("raise `processors=` or remove it, which gives WSL all; or train with fewer --workers"),
        fix: None,
        detects: &["wsl-processors-low"],
    },
    Entry {
        id: "wsl.memory-reclaim",
        area: Area::Wsl,
        status: Status::Info,
        title: "WSL gives cached images back to Windows",
        cause: "a data set that fits in memory is read from disk again after a pause",
        remedy: Some("set autoMemoryReclaim=disabled on a PC that mostly trains"),
        fix: None,
        detects: &["wsl-memory-reclaim"],
    },
    Entry {
        id: "wsl.idle-short",
        area: Area::Wsl,
        status: Status::Warning,
        title: "WSL stops soon after its last terminal",
        cause: "a training in the background ends with it",
        remedy: Some("raise the time, or set it to -1, then stop WSL from Windows"),
        fix: None,
        detects: &["wsl-idle-shutdown"],
    },
    Entry {
        id: "wsl.idle",
        area: Area::Wsl,
        status: Status::Info,
        title: "WSL stops without a terminal",
        cause: "WSL counts the terminals of Windows: without one it stops a distribution after 15 s and \
                its machine after 60 s, also with a training in tmux, screen or SSH",
        remedy: Some(
            "leave one Windows terminal open, or set instanceIdleTimeout=-1 below [general] and \
             vmIdleTimeout=-1 below [wsl2] in .wslconfig",
        ),
        fix: None,
        detects: &["wsl-idle-shutdown"],
    },
    Entry {
        id: "wsl.mirrored-unsupported",
        area: Area::Wsl,
        status: Status::Warning,
        title: "This Windows has no mirrored networking",
        cause: "mirrored networking needs Windows 11 22H2; WSL falls back to NAT with a message",
        remedy: Some("remove the line; for a run of several machines use Windows 11 22H2 or Linux"),
        fix: None,
        detects: &["wsl-mirrored-unsupported"],
    },
];

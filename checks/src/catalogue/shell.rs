//! Catalogue entries about the environment of the shell.

use super::{Area, Entry, Fix};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "shell.variable-breaks",
        area: Area::Shell,
        status: Status::Error,
        title: "An environment variable breaks the run",
        cause: "ranks inherit the shell's environment",
        remedy: Some("unset the variable"),
        fix: Some(Fix {
            does: "unset the variable, or correct its value, in yolo's variables file, which you then source",
            undo: "`yolo undo` restores that file",
        }),
        detects: &[],
    },
    Entry {
        id: "shell.variable-slows",
        area: Area::Shell,
        status: Status::Warning,
        title: "An environment variable slows the run down",
        cause: "ranks inherit the shell's environment",
        remedy: Some("unset the variable, unless you set it on purpose"),
        fix: Some(Fix {
            does: "unset the variable, or set a better value, in yolo's variables file, which you then source",
            undo: "`yolo undo` restores that file",
        }),
        detects: &["omp-threads"],
    },
    Entry {
        id: "shell.variable-ignored",
        area: Area::Shell,
        status: Status::Info,
        title: "yolo overrides environment variables",
        cause: "they are left over from torchrun or a script; yolo sets them itself for each rank",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "shell.snap",
        area: Area::Shell,
        status: Status::Warning,
        title: "The terminal belongs to a snap",
        cause: "a snap's terminal passes on the library path of the snap, which has libraries of an older Ubuntu; \
                `yolo` and libtorch then load those and fail with missing symbols or versions",
        remedy: Some("unset the variable, or use an ordinary terminal"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "shell.other-yolo",
        area: Area::Shell,
        status: Status::Warning,
        title: "The `yolo` command starts another program",
        cause: "the shell starts the `yolo` that comes first on PATH",
        remedy: Some("start this program by its path, define an alias for it, or change PATH"),
        fix: None,
        detects: &[],
    },
];

//! The environment of the shell: the rows of the catalogue.

use super::{Area, Entry, Fix};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "shell.variable-breaks",
        area: Area::Shell,
        status: Status::Error,
        title: "A variable of the shell breaks a run",
        cause: "the ranks inherit the variables of the shell",
        remedy: Some("unset it"),
        fix: Some(Fix {
            does: "unset the variable in the file to source",
            undo: "the script that it names puts back the file of variables",
        }),
        detects: &[],
    },
    Entry {
        id: "shell.variable-slows",
        area: Area::Shell,
        status: Status::Warning,
        title: "A variable of the shell slows a run",
        cause: "the ranks inherit the variables of the shell",
        remedy: Some("unset it, unless you set it for a reason"),
        fix: Some(Fix {
            does: "unset the variable, or set a better number, in the file to source",
            undo: "the script that it names puts back the file of variables",
        }),
        detects: &["omp-threads"],
    },
    Entry {
        id: "shell.variable-ignored",
        area: Area::Shell,
        status: Status::Info,
        title: "Variables that yolo sets itself",
        cause: "they are left over from torchrun or a script; yolo sets them anew for each rank",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "shell.other-yolo",
        area: Area::Shell,
        status: Status::Warning,
        title: "The word `yolo` starts another program",
        cause: "of two programs with one name the shell starts the one whose folder stands earlier on PATH",
        remedy: Some("start this program by its path, give it another name in this shell, or change PATH"),
        fix: None,
        detects: &[],
    },
];

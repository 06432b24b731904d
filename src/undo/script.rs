//! The script that undoes changes where `yolo` itself is gone: for `sh`, and on Windows for `cmd`, which
//! every Windows has and which runs scripts without an execution policy. It is derived from the records of
//! one run of `yolo`, and rewritten with each.
//!
//! Invariant: the script undoes the changes in reverse order, so that a folder that was unlocked first
//! is locked again last, after everything in it is restored.

use std::path::Path;

use super::record::{Record, Step};

/// The name of the undo script.
#[cfg(not(windows))]
pub(super) const SCRIPT: &str = "undo.sh";
#[cfg(windows)]
pub(super) const SCRIPT: &str = "undo.cmd";

/// The first lines of a script.
#[cfg(not(windows))]
const HEAD: &str =
    "#!/bin/sh\n# Undoes what `yolo` changed; `yolo undo` does the same, and more carefully.\nset -e\n";
/// Paths are UTF-8. Without a console there is no code page to change; `cmd /c exit 0` resets the error
/// level of that failure.
#[cfg(windows)]
const HEAD: &str = "@echo off\r\nrem Undoes what `yolo` changed; `yolo undo` does the same, and more carefully.\r\n\
     chcp 65001 >nul\r\ncmd /c exit 0\r\n";

/// The script for the records of one run, which are in the order of the changes. `folder` is that of a record.
pub(super) fn text<'r>(
    records: impl DoubleEndedIterator<Item = &'r Record>,
    folder: impl Fn(&Record) -> std::path::PathBuf,
) -> String {
    let commands = records.rev().flat_map(|record| {
        let folder = folder(record);
        record.steps.iter().filter_map(move |step| command(step, &folder)).collect::<Vec<_>>()
    });
    HEAD.to_owned() + &commands.map(|command| line(&command)).collect::<String>()
}

/// The command of a step. What can be downloaded again is left to `yolo` or to the file manager.
fn command(step: &Step, folder: &Path) -> Option<String> {
    match step {
        Step::File { path, before: Some(copy), .. } => Some(self::copy(&folder.join(copy), path)),
        Step::File { path, before: None, .. } => Some(remove(path)),
        Step::Folder { path } => Some(remove_folder(path)),
        Step::Permissions { path, before, .. } => Some(format!("chmod {before:o} {}", quote(path))),
        Step::Ldconfig => Some("ldconfig".to_owned()),
        Step::Download { .. } | Step::LinuxProgram { .. } => None,
    }
}

/// A path as one argument.
#[cfg(not(windows))]
fn quote(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

/// A path as one argument. File names on Windows cannot contain quotation marks.
#[cfg(windows)]
fn quote(path: &Path) -> String {
    format!("\"{}\"", path.to_string_lossy().replace('/', r"\").replace('%', "%%"))
}

/// Removes a file if it exists.
fn remove(file: &Path) -> String {
    let file = quote(file);
    if cfg!(windows) { format!("if exist {file} del /f {file}") } else { format!("rm -f {file}") }
}

/// Copies a file over another one.
fn copy(from: &Path, to: &Path) -> String {
    let (from, to) = (quote(from), quote(to));
    if cfg!(windows) { format!("copy /y {from} {to} >nul") } else { format!("cp {from} {to}") }
}

/// Removes an empty folder. One that is no longer empty is kept, with a message: the script itself may
/// be in it.
fn remove_folder(folder: &Path) -> String {
    let folder = quote(folder);
    if cfg!(windows) {
        format!(
            "rmdir {folder} 2>nul || (echo kept, because it is no longer empty: {folder} & cmd /c exit 0)"
        )
    } else {
        format!("rmdir {folder} 2>/dev/null || echo 'kept, because it is no longer empty:' {folder}")
    }
}

/// The command as a line of a script that ends at the first failure.
fn line(command: &str) -> String {
    if cfg!(windows) { format!("{command}\r\nif errorlevel 1 exit /b 1\r\n") } else { format!("{command}\n") }
}

/// The command that runs a script.
pub(crate) fn call(script: &Path) -> String {
    if cfg!(windows) { format!("cmd /c \"{}\"", script.display()) } else { format!("sh {}", quote(script)) }
}

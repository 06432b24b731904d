//! Notes for `yolo undo`: what setup installs is noted before it is installed. A journal that cannot be
//! written is no reason to install nothing, and is a warning.

use std::io;

use super::error::SetupError;
use crate::dirs::YoloDirs;
use crate::fetch::{Progress, ProgressEvent};
use crate::undo::{Entry, Journal, command_of_this_process};

/// Installs something with `make`, and notes it.
pub(super) fn noted<T>(
    (dirs, progress): (&YoloDirs, &dyn Progress),
    what: impl Into<String>,
    describe: impl FnOnce(&mut Entry) -> io::Result<()>,
    make: impl FnOnce() -> Result<T, SetupError>,
) -> Result<T, SetupError> {
    let warn = |error: &io::Error| {
        let text = format!("warning: `yolo undo` will not know this change: {error}");
        progress.event(ProgressEvent::Note { text: &text });
    };
    let mut journal = Journal::of(dirs, command_of_this_process());
    let entry = journal.begin_long(what, describe).inspect_err(warn).ok();
    let result = make();
    if let Some(entry) = entry {
        // Without this, the note says that the change was begun, which `yolo undo` compares with the disk.
        let _ = journal.end(entry, result.is_ok()).inspect_err(warn);
    }
    result
}

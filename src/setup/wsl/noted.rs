//! Notes for `yolo undo`: what `yolo setup --wsl` changes is noted before it is changed.

use std::io;

use super::error::WslError;
use crate::undo::{Entry, Journal};

/// Makes a change with `make`, and notes it. A change that cannot be noted is not made.
pub(super) fn noted<T>(
    journal: &mut Journal,
    what: &str,
    describe: impl FnOnce(&mut Entry) -> io::Result<()>,
    make: impl FnOnce() -> Result<T, WslError>,
) -> Result<T, WslError> {
    let folder = journal.folder().to_owned();
    let entry = journal.begin(what, describe).map_err(WslError::file("note the change in", &folder))?;
    let result = make();
    journal.end(entry, result.is_ok()).map_err(WslError::file("note the change in", &folder))?;
    result
}

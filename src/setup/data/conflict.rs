//! What setup refuses to overwrite: files of the user, and another data set in the same folder.

use std::fs;
use std::path::Path;

use super::known::Known;
use super::stamp::{Installed, STAMP};
use crate::setup::error::{DataSetError, SetupError};

/// Rejects a target that contains files which setup did not install.
pub(super) fn refuse_others_files(target: &Path) -> Result<(), SetupError> {
    let is_file = target.symlink_metadata().is_ok_and(|data| !data.is_dir());
    let holds_something = fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_some());
    let others = match Installed::read(target) {
        Some(installed) => installed.has_others_files(),
        None => holds_something && !target.join(STAMP).is_file(),
    };
    if is_file || others {
        return Err(DataSetError::Occupied { folder: target.to_owned(), is_folder: target.is_dir() }.into());
    }
    Ok(())
}

/// Rejects `wanted` if another data set is installed in its folder.
pub(super) fn refuse_another(
    installed: &Installed,
    wanted: &[String],
    known: bool,
) -> Result<(), SetupError> {
    let of_name = Known::named(&installed.name).filter(|_| installed.known);
    // A data set known by name is the same, whichever mirror served it.
    let same = match of_name {
        Some(of_name) => known || wanted == of_name.addresses(),
        None => !known && wanted == installed.sources,
    };
    if same || wanted.is_empty() || installed.sources == wanted {
        return Ok(());
    }
    Err(DataSetError::AnotherSet {
        folder: installed.root.clone(),
        there: installed.sources.join(", "),
        wanted: wanted.join(", "),
    }
    .into())
}

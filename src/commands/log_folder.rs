//! A temporary folder for the plan and the log of ranks that leave nothing else. It is removed when it is dropped;
//! the caller keeps it if a rank failed.

use crate::error::CommandError;

/// Creates the folder, whose name begins with `prefix`.
pub(super) fn create(prefix: &str) -> Result<tempfile::TempDir, CommandError> {
    tempfile::Builder::new().prefix(prefix).tempdir().map_err(|source| CommandError::File {
        what: "cannot create a temporary folder for the log of this rank".to_owned(),
        source,
        hint: Some("set TMPDIR to a writable folder".to_owned()),
    })
}

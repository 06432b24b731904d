//! Reads a recording from a file that the user names.

use std::io::Read as _;
use std::path::Path;

use yolo_checks::{Host, Intent};

use crate::error::CommandError;

/// A recording has tens of kilobytes, and files of up to a mebibyte each in the worst case.
const MAX_BYTES: u64 = 64 << 20;
const RECORDING_HINT: &str = "name a file that `yolo doctor --record FILE` wrote";

/// The recorded host, and the run that was planned when it was recorded.
pub(super) fn replay(file: &Path) -> Result<(Host, Option<Intent>), CommandError> {
    let unreadable = |source| CommandError::File {
        what: format!("cannot read the recording {}", file.display()),
        source,
        hint: Some(RECORDING_HINT.to_owned()),
    };
    let misuse = |what: String| CommandError::Usage { what, hint: RECORDING_HINT.to_owned() };
    // A pipe may never end, and opening one may never return.
    if !std::fs::metadata(file).map_err(unreadable)?.is_file() {
        return Err(misuse(format!("{} is not a recording: it is not a regular file", file.display())));
    }
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(file).map_err(unreadable)?;
    opened.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        let most = MAX_BYTES >> 20;
        return Err(misuse(format!("{} is not a recording: it is larger than {most} MB", file.display())));
    }
    // Editors on Windows may save it as UTF-16.
    Host::replay(&yolo_checks::facts::decode(&bytes))
        .map_err(|source| CommandError::Recording { file: file.to_owned(), source })
}

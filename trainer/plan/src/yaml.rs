//! Reading of YAML files into JSON values, with one message for each way in which a file can be
//! unreadable. Models, hyper-parameters and data sets are all read through here.

use std::path::Path;

use serde_json::Value;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};

use crate::error::PlanError;

/// Larger files are surely not one of ours (the largest known data yaml has 365 names, 15 kB).
const MAX_BYTES: u64 = 4 << 20;

/// Reads a file of which `what` says what it should be: `data set`, `model`.
pub(crate) fn read(path: &Path, what: &str) -> Result<Value, PlanError> {
    let shown = path.display();
    let size = std::fs::metadata(path)
        .map_err(|error| PlanError::new(format!("cannot read the {what} {shown}: {error}")))?;
    if size.is_dir() {
        return Err(PlanError::new(format!("the {what} {shown} is a folder, not a yaml file")));
    }
    if size.len() > MAX_BYTES {
        return Err(PlanError::new(format!(
            "the {what} {shown} is {} MB long: that is not a yaml file",
            size.len() >> 20
        )));
    }
    let bytes = std::fs::read(path)
        .map_err(|error| PlanError::new(format!("cannot read the {what} {shown}: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|_| {
        PlanError::new(format!("the {what} {shown} is not text in UTF-8, so it cannot be YAML"))
    })?;
    parse(&text).map_err(|reason| {
        PlanError::new(format!("the {what} {shown} is not YAML: {reason}"))
            .with_hint("correct the file there, or name another")
    })
}

/// Parses YAML text. The last of two equal keys wins, as in Python's reader, and infinite or
/// undefined numbers become the words `.inf` and `.nan`, so that they are never taken for a number.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        with_snippet: false,
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
}

/// A value in words for a message: short, on one line.
pub(crate) fn show(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

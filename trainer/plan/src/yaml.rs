//! Reads YAML files into JSON values, with one message for each way in which a file can be
//! unreadable. Models, hyperparameters and data sets are all read here.

use std::path::Path;

use serde_json::Value;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use yolo_base::format;

use crate::error::PlanError;

/// The largest file that is read. The largest known data YAML has 365 names and 15 kB.
const MAX_BYTES: u64 = 4 << 20;

/// Reads a file. `what` is what it should describe, for messages: `model`. As in Python's reader, an
/// unquoted `yes`, `no`, `on` or `off` is a boolean.
///
/// # Errors
/// When the file cannot be read, is too large, or is not YAML.
pub fn read(path: &Path, what: &str) -> Result<Value, PlanError> {
    read_as(path, what, false)
}

/// Reads a data YAML. Only `true` and `false` are booleans, because `y`, `n`, `yes` and `no` are names
/// of classes.
pub(crate) fn read_data_set(path: &Path) -> Result<Value, PlanError> {
    read_as(path, "data set", true)
}

fn read_as(path: &Path, what: &str, strict_booleans: bool) -> Result<Value, PlanError> {
    let shown = path.display();
    let unreadable =
        |error: std::io::Error| PlanError::new(format!("cannot read the {what} {shown}: {error}"));
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if metadata.is_dir() {
        return Err(PlanError::new(format!("the {what} {shown} is a folder, not a YAML file")));
    }
    if metadata.len() > MAX_BYTES {
        return Err(PlanError::new(format!(
            "the {what} {shown} is {} large; the limit for yaml files is {}",
            format::memory(metadata.len()),
            format::memory(MAX_BYTES)
        )));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let text = yolo_base::text::decode(bytes)
        .ok_or_else(|| PlanError::new(format!("the {what} {shown} is neither UTF-8 nor UTF-16 text")))?;
    parse(&text, strict_booleans).map_err(|reason| {
        let of_backslash = reason.contains("escape") || reason.contains("hexadecimal");
        PlanError::new(format!("the {what} {shown} is not valid YAML: {reason}")).with_hint(if of_backslash {
            BACKSLASH
        } else {
            "correct the file, or pass another one"
        })
    })
}

/// What to do about a Windows path in double quotes.
pub(crate) const BACKSLASH: &str = "in double quotes, YAML reads a backslash as the beginning of a special character: write a \
                                    Windows path in single quotes or without any, such as `path: 'D:\\set'`";

/// Parses YAML text. The last of two equal keys wins, as in Python's reader. Infinity and NaN become
/// the strings `.inf` and `.nan`, so that they never count as numbers.
fn parse(text: &str, strict_booleans: bool) -> Result<Value, String> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        with_snippet: false,
        strict_booleans: strict_booleans,
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
}

/// A value for a message: short and on one line.
pub(crate) fn show(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

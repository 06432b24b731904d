//! Environment variables that hold a number of seconds. [`check`] reports a value that is none before a run begins; the
//! code that needs a number then reads it with [`of`].

use std::borrow::Cow;
use std::fmt;

use crate::Hint;
use crate::env::{YOLO_JOIN_SECONDS, YOLO_SILENCE_SECONDS};

/// The variables.
const ALL: [&str; 2] = [YOLO_JOIN_SECONDS, YOLO_SILENCE_SECONDS];

/// A value that is not a number of seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotSeconds {
    name: &'static str,
    value: String,
}

impl fmt::Display for NotSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is `{}`, which is not a whole number of seconds from 1", self.name, self.value)
    }
}

impl std::error::Error for NotSeconds {}

impl Hint for NotSeconds {
    fn hint(&self) -> Option<Cow<'_, str>> {
        Some(
            format!("write it without a unit, for example {}=120, or unset it for the default", self.name)
                .into(),
        )
    }
}

/// Checks all of these variables.
///
/// # Errors
/// With the first that is set and is not a number of seconds.
pub fn check() -> Result<(), NotSeconds> {
    ALL.into_iter().try_for_each(|name| read(name).map(drop))
}

/// The seconds of a variable; `None` if it is not set, or [`check`] refuses it.
pub fn of(name: &'static str) -> Option<u64> {
    read(name).ok().flatten()
}

fn read(name: &'static str) -> Result<Option<u64>, NotSeconds> {
    match std::env::var_os(name) {
        Some(value) => parse(name, &value.to_string_lossy()),
        None => Ok(None),
    }
}

/// An empty value counts as none. 0 is an error, because nothing can happen in that time.
fn parse(name: &'static str, value: &str) -> Result<Option<u64>, NotSeconds> {
    if value.trim().is_empty() {
        return Ok(None);
    }
    let seconds = value.trim().parse().ok().filter(|seconds| *seconds > 0);
    seconds.map(Some).ok_or_else(|| NotSeconds { name, value: value.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_positive_number_is_a_limit() {
        let parse = |value| parse(YOLO_JOIN_SECONDS, value);
        assert_eq!(parse(" 30 "), Ok(Some(30)));
        assert_eq!((parse(""), parse(" ")), (Ok(None), Ok(None)));
        for value in ["0", "-1", "10 min", "1.5", "99999999999999999999"] {
            let error = parse(value).unwrap_err();
            let message =
                format!("YOLO_JOIN_SECONDS is `{value}`, which is not a whole number of seconds from 1");
            assert_eq!(error.to_string(), message);
            assert!(error.hint().is_some_and(|hint| hint.contains("YOLO_JOIN_SECONDS=120")));
        }
    }
}

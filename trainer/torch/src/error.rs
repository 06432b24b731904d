//! The error of this crate: what it was doing, and the first line of libtorch's message.

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// A call into libtorch that failed.
#[derive(Debug, thiserror::Error)]
#[error("{action}: {message}")]
pub struct Error {
    action: String,
    message: String,
}

impl Error {
    /// An error with a message of this crate.
    pub(crate) fn new(action: impl Into<String>, message: impl Into<String>) -> Self {
        Self { action: action.into(), message: message.into() }
    }

    /// An error with libtorch's message.
    pub(crate) fn from_libtorch(action: impl Into<String>, text: &str) -> Self {
        Self::new(action, first_line(text))
    }

    /// An error that tch returned during `action`.
    pub(crate) fn from_tch(action: impl Into<String>, error: &tch::TchError) -> Self {
        match error {
            tch::TchError::Torch(text) => Self::from_libtorch(action, text),
            other => Self::new(action, other.to_string()),
        }
    }

    /// libtorch's message: one line, without a backtrace.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// The first line that is not empty, without c10's note of where the exception was raised.
fn first_line(text: &str) -> &str {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no message");
    line.split("Exception raised from ").next().unwrap_or(line).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_has_the_action_and_the_first_line() {
        let text =
            "\nExpected a and b\nException raised from f at x.cpp:3 (most recent call first):\nframe #0";
        let error = Error::from_libtorch("SGD step", text);
        assert_eq!(error.to_string(), "SGD step: Expected a and b");
        assert_eq!(error.message(), "Expected a and b");
    }

    #[test]
    fn a_message_without_text_is_replaced() {
        assert_eq!(first_line(" \n"), "no message");
    }
}

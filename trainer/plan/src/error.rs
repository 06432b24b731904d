//! Mistakes in the options and files that describe a run.

use std::borrow::Cow;

use yolo_base::Hint;

/// A mistake in an option or in a file that an option names. The message has the option or file, the
/// value and the reason.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct PlanError {
    message: String,
    hint: Option<String>,
}

impl PlanError {
    /// An error whose message says what happened, on which file or value, and why.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// Adds the next step that the user can take.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl Hint for PlanError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        self.hint.as_deref().map(Cow::Borrowed)
    }
}

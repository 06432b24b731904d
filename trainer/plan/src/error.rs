//! What can be wrong with the words and files that describe a run. Every error is one message
//! with the option or file, the value and the reason; [`PlanError::hint`] says what to do next.

/// A mistake in an option or in a file that an option names.
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

    /// What to do next, if there is one thing to do.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

//! Mistakes in the options and files that describe a run. Those of the options themselves are told from those of
//! files and of the machine, because the command ends with another status.

use std::borrow::Cow;

use yolo_base::Hint;

/// A mistake in an option or in a file that an option names. The message has the option or file, the
/// value and the reason.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct PlanError {
    message: String,
    hint: Option<String>,
    usage: bool,
}

impl PlanError {
    /// An error whose message says what happened, on which file or value, and why.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, usage: false }
    }

    /// Likewise, for options, or variables of a launcher, whose values are invalid or contradict each other: other
    /// files and another machine would not help.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { usage: true, ..Self::new(message) }
    }

    /// Whether the options are wrong, and not a file or the machine.
    pub fn is_usage(&self) -> bool {
        self.usage
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

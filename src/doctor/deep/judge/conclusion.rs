//! What follows from what was seen: errors, warnings and the expectation of the planned run, as data.

use super::expectation::Expectation;

/// What follows.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// What fails or gives wrong results.
    pub(crate) errors: Vec<Conclusion>,
    /// What works, but slowly or with a risk.
    pub(crate) warnings: Vec<Conclusion>,
    /// What the planned run can expect.
    pub(crate) expectation: Option<Expectation>,
}

/// One conclusion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conclusion {
    /// One sentence without a period.
    pub(crate) text: String,
    /// What to do.
    pub(crate) hint: Option<String>,
}

impl Conclusion {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), hint: None }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

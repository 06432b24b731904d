//! What a rule reads from one machine.

use crate::facts::Fact;

/// A value as it is compared, and as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Value {
    /// What the user sees.
    pub(super) shown: String,
    /// What is compared; the text that is shown, unless that is shortened.
    pub(super) key: String,
    /// The amount, where the value is one: amounts are equal if they are almost the same.
    pub(super) amount: Option<f64>,
    /// Whether it says that there is nothing; that all machines lack it is not worth showing.
    pub(super) is_absence: bool,
}

/// The answer of one machine to one rule.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reading {
    /// A value to compare.
    Is(Value),
    /// The rule is about something that this machine or its run does not have; another rule says so.
    NotApplicable,
    /// The fact is missing, for this reason.
    Unknown(String),
}

impl Reading {
    /// A value that is compared as it is shown.
    pub(super) fn text(shown: impl Into<String>) -> Self {
        let shown = shown.into();
        Self::Is(Value { key: shown.clone(), shown, amount: None, is_absence: false })
    }

    /// That there is nothing, in these words.
    pub(super) fn absent(shown: &str) -> Self {
        Self::Is(Value { key: shown.to_owned(), shown: shown.to_owned(), amount: None, is_absence: true })
    }

    /// A value that is compared by a longer text than the one that is shown.
    pub(super) fn keyed(shown: impl Into<String>, key: impl Into<String>) -> Self {
        Self::Is(Value { shown: shown.into(), key: key.into(), amount: None, is_absence: false })
    }

    /// An amount. Any unit will do, if all machines are read in the same one.
    pub(super) fn amount(amount: f64, shown: impl Into<String>) -> Self {
        let shown = shown.into();
        Self::Is(Value { key: shown.clone(), shown, amount: Some(amount), is_absence: false })
    }

    /// The reading of a fact.
    pub(super) fn of<T>(fact: Fact<T>, read: impl FnOnce(T) -> Self) -> Self {
        match fact {
            Ok(known) => read(known),
            Err(why) => Self::Unknown(why.0),
        }
    }

    /// A value that may be absent; then the rule does not apply.
    pub(super) fn if_any(shown: Option<String>) -> Self {
        shown.map_or(Self::NotApplicable, Self::text)
    }
}

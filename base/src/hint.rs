//! What an error suggests to do next. Every error that a user can cause implements [`Hint`], so
//! that the printer needs one function for all of them.
//!
//! The rule for messages: `Display` of an error is the complete message, causes included.
//! `source` serves programs that look for the original error; nothing here prints it again.

use std::borrow::Cow;

/// An error that may know what to do next.
pub trait Hint: std::error::Error {
    /// What the user can do next, as a sentence without a period; `None` if the message says it all.
    fn hint(&self) -> Option<Cow<'_, str>> {
        None
    }
}

//! What all crates of `yolo` share, and nothing else: the names of environment variables
//! ([`mod@env`]), the exit statuses ([`exit`]), how a size, a duration or a count is written
//! ([`mod@format`]), and the next step that an error suggests ([`Hint`]).
//!
//! This crate has no dependencies and must stay that way: every other crate builds after it.

pub mod env;
pub mod exit;
pub mod format;
mod hint;

pub use hint::Hint;

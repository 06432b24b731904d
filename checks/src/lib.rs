//! What a host is like, and what that means for a training run. [`facts`] are collected first and
//! judged afterwards by [`checks`], which are pure functions: the same facts give the same
//! [`Finding`]s anywhere. Nothing here prints, downloads or changes the host.

mod catalogue;
pub mod checks;
pub mod facts;
mod finding;
pub mod wsl_output;
pub mod wsl_values;
pub mod wslconfig;

pub use catalogue::{Area, Entry, entry};
pub use checks::{Intent, judge};
pub use facts::{Fact, Facts};
pub use finding::{Finding, Remedy, Status};

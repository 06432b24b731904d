//! Compares machines that are to train together: which facts differ, whether a difference matters, and
//! why. `rules` is the table that decides; everything else reads facts, compares readings and finds
//! the problems that only some of the machines have. Nothing here prints.

mod comparison;
mod findings;
mod machine;
mod machines;
mod reading;
mod rule;
mod rules;

pub use comparison::{Comparison, Difference, Equal, Unread};
pub use findings::{FindingDifference, Here, State};
pub use machine::Machine;
pub use machines::{compare, compared, read_facts};

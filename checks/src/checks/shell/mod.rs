//! Environment variables and the PATH.

mod allocator;
mod infiniband;
mod program;
mod snap;
mod variables;

use super::Check;

pub(super) const CHECKS: &[&Check] = &[&variables::CHECK, &snap::CHECK, &program::CHECK];

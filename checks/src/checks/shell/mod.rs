//! Environment variables and the PATH.

pub(super) mod allocator;
mod graph_file;
pub(super) mod infiniband;
mod program;
mod snap;
mod variables;

use super::Check;

pub(super) const CHECKS: &[&Check] = &[&variables::CHECK, &snap::CHECK, &program::CHECK];

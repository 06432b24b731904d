//! Environment variables and the PATH.

mod program;
mod variables;

use super::Check;

pub(super) const CHECKS: &[&Check] = &[&variables::CHECK, &program::CHECK];

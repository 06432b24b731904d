//! The environment of the shell.

use super::Check;

pub(super) const CHECKS: &[&Check] = &[];

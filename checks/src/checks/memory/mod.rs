//! Memory and shared memory.

mod available;

use super::Check;

pub(super) const CHECKS: &[&Check] = &[&available::CHECK];

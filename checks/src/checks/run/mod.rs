//! The run that is meant.

use super::Check;

pub(super) const CHECKS: &[&Check] = &[];

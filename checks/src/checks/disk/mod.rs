//! Disk and data set.

mod space;

use super::Check;

pub(super) const CHECKS: &[&Check] = &[&space::CHECK];

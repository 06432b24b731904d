//! Network and ports.

mod port;

use super::Check;

pub(super) const CHECKS: &[&Check] = &[&port::CHECK];

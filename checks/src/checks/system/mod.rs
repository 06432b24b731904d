//! Operating system and processor.

mod platform;

use super::Check;

pub(super) const CHECKS: &[&Check] = &[&platform::CHECK];

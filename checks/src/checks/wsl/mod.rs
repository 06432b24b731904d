//! Windows Subsystem for Linux.

mod version;

use super::Check;

pub(super) const CHECKS: &[&Check] = &[&version::CHECK];

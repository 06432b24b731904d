//! Driver and GPUs.

mod devices;
mod driver;
mod memory;

use super::Check;

pub(super) const CHECKS: &[&Check] = &[&driver::CHECK, &devices::CHECK, &memory::CHECK];

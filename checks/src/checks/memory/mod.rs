//! Memory and shared memory.

mod available;
mod cache;
mod killed;
mod oomd;
mod overcommit;
pub(in crate::checks) mod shared;
mod takers;

use super::Check;

pub(super) const CHECKS: &[&Check] =
    &[&available::CHECK, &shared::CHECK, &cache::CHECK, &killed::CHECK, &oomd::CHECK, &overcommit::CHECK];

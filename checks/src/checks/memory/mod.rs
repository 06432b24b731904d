//! Memory and shared memory.

mod available;
mod cache;
mod killed;
mod oomd;
mod overcommit;
mod shared;
mod takers;

use super::Check;

pub(super) const CHECKS: &[&Check] =
    &[&available::CHECK, &shared::CHECK, &cache::CHECK, &killed::CHECK, &oomd::CHECK, &overcommit::CHECK];

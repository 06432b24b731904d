//! Operating system and processor.

pub(super) mod leftovers;
mod limits;
mod numa;
mod platform;
mod raise;
mod session;

use super::Check;

pub(super) const CHECKS: &[&Check] =
    &[&platform::CHECK, &limits::CHECK, &leftovers::CHECK, &session::CHECK, &numa::CHECK];

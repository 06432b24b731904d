//! Containers.

mod cdi;
mod gpus;
mod limits;
mod network;
mod toolkit;
mod windows_library;

use super::Check;

pub(super) const CHECKS: &[&Check] =
    &[&gpus::CHECK, &cdi::CHECK, &windows_library::CHECK, &toolkit::CHECK, &limits::CHECK, &network::CHECK];

//! Containers.

mod gpus;
mod limits;
mod network;
mod toolkit;

use super::Check;

pub(super) const CHECKS: &[&Check] = &[&gpus::CHECK, &toolkit::CHECK, &limits::CHECK, &network::CHECK];

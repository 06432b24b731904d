//! Containers.

mod bridge_mtu;
mod cdi;
mod enroot;
mod gpus;
mod limits;
mod network;
mod no_cgroups;
mod ordering_cycle;
mod podman;
mod refused;
mod shared_gpu;
mod threads;
mod toolkit;
mod user_namespaces;
mod windows_library;

use super::Check;

pub(super) const CHECKS: &[&Check] = &[
    &gpus::CHECK,
    &shared_gpu::CHECK,
    &threads::CHECK,
    &cdi::CHECK,
    &windows_library::CHECK,
    &toolkit::CHECK,
    &no_cgroups::CHECK,
    &podman::CHECK,
    &user_namespaces::CHECK,
    &limits::CHECK,
    &network::CHECK,
    &bridge_mtu::CHECK,
];

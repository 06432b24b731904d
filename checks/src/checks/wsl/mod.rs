//! Windows Subsystem for Linux.

mod allocator;
mod clock;
mod config;
mod config_misplaced;
mod config_values;
mod crash_dumps;
mod data;
mod default_user;
pub(in crate::checks) mod disk;
mod fstab;
pub(in crate::checks) mod gpu_blocked;
mod gpu_device;
mod gpu_lost;
mod host;
mod installation;
mod interop;
mod kernel;
mod known_faults;
mod linux_driver;
mod loader;
mod local_ports;
mod memory;
mod mtu;
mod nested;
mod network;
mod policy;
mod processor_group;
mod release;
mod restart_due;
mod services;
mod session;
mod several_gpus;
mod several_machines;
mod start;
mod version;
mod virtualization;
mod wsl_conf;

use super::Check;
pub(super) use installation::failure;

use host::{LIBRARIES, SHUTDOWN, edit, has_wslconfig, is_wsl_itself};

pub(super) const CHECKS: &[&Check] = &[
    &version::CHECK,
    &kernel::CHECK,
    &known_faults::CHECK,
    &release::CHECK,
    &installation::CHECK,
    &gpu_device::CHECK,
    &linux_driver::CHECK,
    &loader::CHECK,
    &gpu_lost::CHECK,
    &several_gpus::CHECK,
    &allocator::CHECK,
    &memory::CHECK,
    &config::CHECK,
    &config_misplaced::CHECK,
    &restart_due::CHECK,
    &processor_group::CHECK,
    &config_values::CHECK,
    &local_ports::CHECK,
    &data::CHECK,
    &disk::CHECK,
    &fstab::CHECK,
    &crash_dumps::CHECK,
    &network::CHECK,
    &mtu::CHECK,
    &several_machines::CHECK,
    &clock::CHECK,
    &session::CHECK,
    &default_user::CHECK,
    &interop::CHECK,
];

//! Operating system and CPU.

mod battery;
mod clock;
mod cpu;
mod cpu_busy;
mod cpu_slow;
mod cpu_switches;
mod cpu_unstable;
mod hardware_errors;
pub(super) mod leftovers;
mod limits;
mod logind;
mod no_threads;
mod numa;
mod platform;
mod raise_limit;
mod remove_ipc;
mod restart_planned;
mod session_end;
mod sleeps;
mod tasks;
pub(in crate::checks) mod unclean_restart;

use super::Check;

pub(super) const CHECKS: &[&Check] = &[
    &platform::CHECK,
    &cpu::CHECK,
    &clock::CHECK,
    &limits::CHECK,
    &leftovers::CHECK,
    &remove_ipc::CHECK,
    &numa::CHECK,
    &battery::CHECK,
    &cpu_busy::CHECK,
    &unclean_restart::CHECK,
    &hardware_errors::CHECK,
    &cpu_unstable::CHECK,
    &sleeps::CHECK,
    &session_end::CHECK,
    &restart_planned::CHECK,
    &cpu_slow::CHECK,
];

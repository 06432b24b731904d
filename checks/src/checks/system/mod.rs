//! Operating system and CPU.

mod battery;
mod clock;
mod cpu;
mod cpu_busy;
pub(super) mod leftovers;
mod limits;
mod logind;
mod numa;
mod platform;
mod raise_limit;
mod remove_ipc;
mod tasks;

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
];

//! The planned run.

mod backend_option;
mod batch;
mod devices;
mod gpu_memory;
mod job_time;
mod model;
mod precision;
pub(super) mod resume;
mod sync_bn;
mod tasks;
mod workers;

use super::Check;

pub(super) const CHECKS: &[&Check] = &[
    &devices::CHECK,
    &batch::CHECK,
    &gpu_memory::CHECK,
    &workers::CHECK,
    &job_time::CHECK,
    &sync_bn::CHECK,
    &precision::CHECK,
    &backend_option::CHECK,
    &model::CHECK,
    &resume::CHECK,
    &tasks::CHECK,
];

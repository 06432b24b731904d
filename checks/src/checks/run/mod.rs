//! The planned run.

mod batch;
mod devices;
mod gpu_memory;
mod model;
mod precision;
mod requested_backend;
mod resume;
mod sync_bn;
mod workers;

use super::Check;

pub(super) const CHECKS: &[&Check] = &[
    &devices::CHECK,
    &batch::CHECK,
    &gpu_memory::CHECK,
    &workers::CHECK,
    &sync_bn::CHECK,
    &precision::CHECK,
    &requested_backend::CHECK,
    &model::CHECK,
    &resume::CHECK,
];

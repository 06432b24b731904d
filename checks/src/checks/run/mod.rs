//! The planned run.

mod backend_option;
mod batch;
mod devices;
mod gpu_memory;
mod model;
mod precision;
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
    &backend_option::CHECK,
    &model::CHECK,
    &resume::CHECK,
];

//! CUDA, cuDNN, NCCL and libtorch.

mod architecture;
mod build_variables;
mod c_library;
mod cuda_driver;
mod foreign;
mod libcuda;
mod libtorch;
mod room;
mod version;
mod whole;

use super::Check;

pub(super) const CHECKS: &[&Check] = &[
    &libtorch::CHECK,
    &version::CHECK,
    &whole::CHECK,
    &room::CHECK,
    &c_library::CHECK,
    &libcuda::CHECK,
    &cuda_driver::CHECK,
    &architecture::CHECK,
    &build_variables::CHECK,
    &foreign::CHECK,
];

/// The only version of libtorch that the trainer works with: tch is made for one.
const LIBTORCH: [u32; 3] = [2, 11, 0];

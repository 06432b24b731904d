//! CUDA, cuDNN, NCCL and libtorch.

mod architecture;
mod cuda_driver;
mod foreign;
mod libtorch;

use super::Check;

pub(super) const CHECKS: &[&Check] =
    &[&libtorch::CHECK, &cuda_driver::CHECK, &architecture::CHECK, &foreign::CHECK];

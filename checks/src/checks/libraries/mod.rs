//! CUDA, cuDNN, NCCL and libtorch.

mod build_variables;
mod cuda_driver;
mod cuda_parts;
mod disk_space;
pub(super) mod driver_folder;
mod empty_library;
mod executable_stack;
mod foreign;
mod glibc;
mod incomplete;
mod kernels;
mod left_out;
pub(super) mod libcuda;
mod libstdcxx;
mod libtorch;
mod noexec;
mod old_runtime;
pub(super) mod other_libcuda;
mod packaged_nccl;
mod replacement;
mod version;

use super::Check;
use replacement::{LIBTORCH, fitting, install, newer_driver};

pub(super) const CHECKS: &[&Check] = &[
    &libtorch::CHECK,
    &version::CHECK,
    &incomplete::CHECK,
    &disk_space::CHECK,
    &glibc::CHECK,
    &executable_stack::CHECK,
    &noexec::CHECK,
    &libcuda::CHECK,
    &cuda_driver::CHECK,
    &kernels::CHECK,
    &build_variables::CHECK,
    &foreign::CHECK,
    &libstdcxx::CHECK,
];

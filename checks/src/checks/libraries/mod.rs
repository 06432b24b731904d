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

pub(in crate::checks) use foreign::is_nccl as is_nccl_foreign;

use super::Check;
use crate::builds::Build;
use crate::facts::Host;
use crate::finding::Finding;

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

/// The commands that put another build of libtorch in the place of the one in use.
fn install(host: &Host, build: &Build, finding: Finding) -> Finding {
    // What LIBTORCH names wins over what setup fetches.
    let named = host.named_libtorch().ok().flatten().is_some();
    let unset = if host.is_windows().unwrap_or(false) { "set LIBTORCH=" } else { "unset LIBTORCH" };
    let finding = named.then_some(unset).into_iter().fold(finding, Finding::command);
    finding.command(format!("yolo setup --libtorch {}", build.name))
}

//! Windows without WSL.

mod backend;
mod data_in_wsl;
mod long_paths;
mod page_file;
mod sleep;
mod tcc;
mod tdr;

pub(in crate::checks) use backend::broken_gloo;

use super::Check;

pub(super) const CHECKS: &[&Check] = &[
    &backend::CHECK,
    &tcc::CHECK,
    &data_in_wsl::CHECK,
    &page_file::CHECK,
    &long_paths::CHECK,
    &tdr::CHECK,
    &sleep::CHECK,
];

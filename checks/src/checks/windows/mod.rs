//! Windows without WSL.

mod backend;
mod long_paths;
mod page_file;
mod tdr;

pub(in crate::checks) use backend::broken_gloo;

use super::Check;

pub(super) const CHECKS: &[&Check] = &[&backend::CHECK, &page_file::CHECK, &long_paths::CHECK, &tdr::CHECK];

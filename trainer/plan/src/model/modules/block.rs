//! Blocks of several convolutions: bottlenecks, spatial pyramid pooling and the CSP family.

use super::super::args::Row;
use super::super::{CspSpec, Module};
use super::rules::{hidden, require_groups, require_halvable, require_multiple_of_4, require_odd};
use crate::error::PlanError;

pub(super) fn bottleneck(row: &Row<'_>, c1: usize, c2: usize) -> Result<Module, PlanError> {
    row.at_most(3)?;
    let (g, e) = (row.size(1, "groups", 1, 1)?, row.expansion(2, 0.5)?);
    require_groups(row, g, hidden(row, c2, e)?, c2)?;
    let shortcut = row.flag(0, "shortcut", true)?;
    Ok(Module::Bottleneck { c1, c2, shortcut, g, e, act: row.default_act })
}

pub(super) fn ghost_bottleneck(row: &Row<'_>, c1: usize, c2: usize) -> Result<Module, PlanError> {
    row.at_most(2)?;
    require_multiple_of_4(row, c2)?;
    let s = row.size(1, "the stride", 1, 1)?;
    if s > 2 {
        return Err(row.error(format!("the stride is {s}; it must be 1 or 2")));
    }
    if s == 1 && c1 != c2 {
        return Err(
            row.error(format!("with stride 1 it needs as many input as output channels, not {c1} and {c2}"))
        );
    }
    let k = row.size(0, "the kernel", 3, 1)?;
    Ok(Module::GhostBottleneck { c1, c2, k, s, act: row.default_act })
}

pub(super) fn spp(row: &Row<'_>, c1: usize, c2: usize) -> Result<Module, PlanError> {
    row.at_most(1)?;
    require_halvable(row, c1)?;
    let k = require_odd(row, row.kernels(0, &[5, 9, 13])?)?;
    Ok(Module::Spp { c1, c2, k, act: row.default_act })
}

pub(super) fn sppf(row: &Row<'_>, c1: usize, c2: usize) -> Result<Module, PlanError> {
    row.at_most(1)?;
    require_halvable(row, c1)?;
    let k = row.size(0, "the kernel", 5, 1)?;
    require_odd(row, vec![k])?;
    Ok(Module::Sppf { c1, c2, k, act: row.default_act })
}

/// Reads `shortcut, g, e`, which the CSP family shares, from position `at`.
pub(super) fn csp(row: &Row<'_>, c1: usize, c2: usize, n: usize, at: usize) -> Result<CspSpec, PlanError> {
    row.at_most(at + 3)?;
    let (g, e) = (row.size(at + 1, "groups", 1, 1)?, row.expansion(at + 2, 0.5)?);
    let inner = hidden(row, c2, e)?;
    require_groups(row, g, inner, inner)?;
    Ok(CspSpec { c1, c2, n, shortcut: row.flag(at, "shortcut", true)?, g, e, act: row.default_act })
}

pub(super) fn c3_tr(row: &Row<'_>, c1: usize, c2: usize, n: usize) -> Result<Module, PlanError> {
    let csp = csp(row, c1, c2, n, 0)?;
    let hidden = hidden(row, c2, csp.e)?;
    if !hidden.is_multiple_of(4) {
        return Err(row.error(format!("{hidden} hidden channels cannot be divided among 4 attention heads")));
    }
    Ok(Module::C3Tr(csp))
}

pub(super) fn c3_spp(row: &Row<'_>, c1: usize, c2: usize) -> Result<Module, PlanError> {
    // Its kernels come before the arguments that the family shares, and its repeats do nothing.
    row.at_most(5)?;
    let k = require_odd(row, row.kernels(0, &[5, 9, 13])?)?;
    let csp = csp(row, c1, c2, row.size(1, "the repeats", 1, 1)?, 2)?;
    require_halvable(row, hidden(row, c2, csp.e)?)?;
    Ok(Module::C3Spp { csp, k })
}

pub(super) fn c3_ghost(row: &Row<'_>, c1: usize, c2: usize, n: usize) -> Result<Module, PlanError> {
    let csp = csp(row, c1, c2, n, 0)?;
    require_multiple_of_4(row, hidden(row, c2, csp.e)?)?;
    Ok(Module::C3Ghost(csp))
}

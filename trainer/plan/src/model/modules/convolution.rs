//! Convolutions: their arguments and the rules for their channels.

use super::super::args::Row;
use super::super::channels::{gcd, mixed_shares};
use super::super::{ConvSpec, Module};
use super::rules::{hidden, require_even, require_groups, same_padding};
use crate::error::PlanError;

pub(super) fn conv(row: &Row<'_>, c1: usize, c2: usize) -> Result<Module, PlanError> {
    row.at_most(6)?;
    Ok(Module::Conv(conv_spec(row, c1, c2, Some(4), 5)?))
}

pub(super) fn focus(row: &Row<'_>, c1: usize, c2: usize) -> Result<Module, PlanError> {
    row.at_most(5)?;
    Ok(Module::Focus(conv_spec(row, c1, c2, None, 4)?))
}

/// Reads `k, s, p, g` and, at these positions, the dilation and the activation.
fn conv_spec(
    row: &Row<'_>,
    c1: usize,
    c2: usize,
    dilation: Option<usize>,
    activation: usize,
) -> Result<ConvSpec, PlanError> {
    let g = row.size(3, "groups", 1, 1)?;
    require_groups(row, g, c1, c2)?;
    let k = row.pair(0, "the kernel", 1, 1)?;
    let d = dilation.map_or(Ok(1), |position| row.size(position, "the dilation", 1, 1))?;
    Ok(ConvSpec {
        c1,
        c2,
        k,
        s: row.pair(1, "the stride", 1, 1)?,
        p: row.optional_pair(2, "the padding")?.unwrap_or_else(|| same_padding(k, d)),
        g,
        d,
        act: row.activation(activation)?,
    })
}

pub(super) fn dw_conv(row: &Row<'_>, c1: usize, c2: usize) -> Result<Module, PlanError> {
    // k, s, d, act. The padding follows from the kernel.
    row.at_most(4)?;
    let d = row.size(2, "the dilation", 1, 1)?;
    let k = row.pair(0, "the kernel", 1, 1)?;
    let s = row.pair(1, "the stride", 1, 1)?;
    let (p, g, act) = (same_padding(k, d), gcd(c1, c2), row.activation(3)?);
    Ok(Module::DwConv(ConvSpec { c1, c2, k, s, p, g, d, act }))
}

pub(super) fn ghost_conv(row: &Row<'_>, c1: usize, c2: usize) -> Result<Module, PlanError> {
    row.at_most(4)?;
    require_even(row, c2)?;
    let g = row.size(2, "groups", 1, 1)?;
    require_groups(row, g, c1, c2 / 2)?;
    let k = row.size(0, "the kernel", 1, 1)?;
    let s = row.size(1, "the stride", 1, 1)?;
    Ok(Module::GhostConv { c1, c2, k, s, g, act: row.activation(3)? })
}

pub(super) fn cross_conv(row: &Row<'_>, c1: usize, c2: usize) -> Result<Module, PlanError> {
    row.at_most(5)?;
    let (g, e) = (row.size(2, "groups", 1, 1)?, row.expansion(3, 1.0)?);
    require_groups(row, g, hidden(row, c2, e)?, c2)?;
    let (k, s) = (row.size(0, "the kernel", 3, 1)?, row.size(1, "the stride", 1, 1)?);
    let shortcut = row.flag(4, "shortcut", false)?;
    Ok(Module::CrossConv { c1, c2, k, s, g, e, shortcut, act: row.default_act })
}

pub(super) fn mix_conv(row: &Row<'_>, c1: usize, c2: usize) -> Result<Module, PlanError> {
    row.at_most(3)?;
    let k = row.kernels(0, &[1, 3])?;
    let equal_ch = row.flag(2, "equal_ch", true)?;
    let shares = mixed_shares(c2, &k, equal_ch);
    if shares.contains(&0) || shares.iter().sum::<usize>() != c2 {
        return Err(row.error(format!("{c2} channels cannot be divided among {} kernels", k.len())));
    }
    Ok(Module::MixConv2d { c1, c2, k, s: row.size(1, "the stride", 1, 1)?, equal_ch })
}

pub(super) fn conv_transpose(row: &Row<'_>, c1: usize, c2: usize) -> Result<Module, PlanError> {
    let [k, s, p, op] = transpose(row)?;
    Ok(Module::ConvTranspose2d { c1, c2, k, s, p, op })
}

pub(super) fn dw_conv_transpose(row: &Row<'_>, c1: usize, c2: usize) -> Result<Module, PlanError> {
    let [k, s, p1, p2] = transpose(row)?;
    Ok(Module::DwConvTranspose2d { c1, c2, k, s, p1, p2 })
}

/// Kernel, stride, padding and output padding of a transposed convolution.
fn transpose(row: &Row<'_>) -> Result<[usize; 4], PlanError> {
    row.at_most(4)?;
    let (k, s) = (row.size(0, "the kernel", 1, 1)?, row.size(1, "the stride", 1, 1)?);
    let (p, op) = (row.size(2, "the padding", 0, 0)?, row.size(3, "the output padding", 0, 0)?);
    if op >= s {
        return Err(row.error(format!("the output padding {op} must be smaller than the stride {s}")));
    }
    Ok([k, s, p, op])
}

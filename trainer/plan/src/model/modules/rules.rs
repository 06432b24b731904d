//! Rules for channels and kernels that several modules share.

use super::super::args::Row;
use crate::error::PlanError;

/// The padding that keeps the size of the map at stride 1 (spec §2).
pub(super) fn same_padding(k: [usize; 2], d: usize) -> [usize; 2] {
    k.map(|k| {
        let span = d * (k - 1) + 1; // What the dilated kernel covers.
        span / 2
    })
}

/// The hidden channels of a block, `int(c2·e)`.
pub(super) fn hidden(row: &Row<'_>, c2: usize, e: f64) -> Result<usize, PlanError> {
    match (c2 as f64 * e) as usize {
        0 => Err(row.error(format!("an expansion of {e} leaves no hidden channels out of {c2}"))),
        channels => Ok(channels),
    }
}

pub(super) fn require_groups(row: &Row<'_>, g: usize, c1: usize, c2: usize) -> Result<(), PlanError> {
    if c1.is_multiple_of(g) && c2.is_multiple_of(g) {
        return Ok(());
    }
    Err(row.error(format!("{g} groups do not divide {c1} input and {c2} output channels")))
}

pub(super) fn require_even(row: &Row<'_>, c2: usize) -> Result<(), PlanError> {
    if c2.is_multiple_of(2) {
        return Ok(());
    }
    Err(row.error(format!("the number of output channels is {c2}; it must be even")))
}

/// A ghost bottleneck halves its channels twice.
pub(super) fn require_multiple_of_4(row: &Row<'_>, c2: usize) -> Result<(), PlanError> {
    if c2.is_multiple_of(4) {
        return Ok(());
    }
    Err(row.error(format!("a ghost block needs a multiple of 4 channels, not {c2}")))
}

pub(super) fn require_halvable(row: &Row<'_>, c1: usize) -> Result<(), PlanError> {
    if c1 >= 2 { Ok(()) } else { Err(row.error("it halves its channels, so it needs at least 2")) }
}

/// Pooling at stride 1 keeps the size of the map only if the kernel is odd.
pub(super) fn require_odd(row: &Row<'_>, kernels: Vec<usize>) -> Result<Vec<usize>, PlanError> {
    match kernels.iter().find(|k| **k % 2 == 0) {
        Some(k) => Err(row.error(format!("the pooling kernel is {k}; it must be odd"))),
        None => Ok(kernels),
    }
}

//! Numbers of all ranks.

use crate::error::TrainError;
use crate::rank::context::Context;

/// Rank 0's number on every rank.
pub(super) fn of_first(context: &Context, number: usize) -> Result<usize, TrainError> {
    Ok(of_all(context, number)?.first().copied().unwrap_or(number))
}

/// The sum over all ranks.
pub(super) fn sum(context: &Context, number: usize) -> Result<usize, TrainError> {
    Ok(of_all(context, number)?.into_iter().sum())
}

/// The numbers of all ranks, in rank order.
pub(super) fn of_all(context: &Context, number: usize) -> Result<Vec<usize>, TrainError> {
    let read = |bytes: Vec<u8>| bytes.try_into().map(|bytes| u64::from_le_bytes(bytes) as usize).ok();
    let all = context.gather((number as u64).to_le_bytes().to_vec())?;
    let all: Option<Vec<usize>> = all.into_iter().map(read).collect();
    all.ok_or_else(|| TrainError::new("a rank sent something that is not a number"))
}

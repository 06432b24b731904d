//! Batch normalization in training mode over the batches of all ranks. The result is the same as in
//! one process with the whole batch, even if the ranks' shares differ in size.

#![expect(unsafe_code, reason = "calls the shim's sync_batch_norm")]

use std::ptr;

use tch::Tensor;

use crate::error::Result;
use crate::ffi;
use crate::process_group::ProcessGroup;

/// Running statistics of shape (C), which are updated in place.
#[derive(Clone, Copy, Debug)]
pub struct RunningStats<'a> {
    /// Running mean.
    pub mean: &'a Tensor,
    /// Running unbiased variance.
    pub var: &'a Tensor,
}

/// Normalizes `input` (N, C, …) per channel with the mean and variance over all ranks, then scales
/// by `weight` and shifts by `bias` (both of shape (C)).
///
/// The gradient of the input takes all ranks into account. The gradients of weight and bias are this
/// rank's share; their sum over the ranks is the gradient of the whole batch. `momentum` is the
/// weight of the new statistics, as in PyTorch. Half-precision inputs are normalized in float32.
///
/// All ranks must make the calls in the same order and run the backward pass of each.
///
/// # Errors
/// If a peer is lost or too slow, the shapes do not fit, or the ranks together have fewer than two
/// values per channel, which have no variance.
pub fn sync_batch_norm(
    group: &ProcessGroup,
    input: &Tensor,
    weight: &Tensor,
    bias: &Tensor,
    running: Option<RunningStats<'_>>,
    momentum: f64,
    eps: f64,
) -> Result<Tensor> {
    let (running_mean, running_var) = running.map_or((ptr::null_mut(), ptr::null_mut()), |running| {
        (ffi::pointer(running.mean), ffi::pointer(running.var))
    });
    group.roll().begin("sync_batch_norm".to_owned());
    let mut output = ptr::null_mut();
    // SAFETY: group and tensors are alive during the call, and the graph keeps references of its
    // own. Null running statistics mean that there are none.
    let status = unsafe {
        ffi::tchd_sync_batch_norm(
            group.as_ptr(),
            ffi::pointer(input),
            ffi::pointer(weight),
            ffi::pointer(bias),
            running_mean,
            running_var,
            momentum,
            eps,
            &raw mut output,
        )
    };
    let result = ffi::check(status, || group.action("sync_batch_norm"));
    group.roll().end();
    result.map_err(|error| group.explain(error))?;
    // SAFETY: on success the shim allocated a tensor handle, and we are its only owner.
    Ok(unsafe { Tensor::from_ptr(output.cast()) })
}

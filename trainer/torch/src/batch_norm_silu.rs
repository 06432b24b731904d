//! Batch normalization in training mode and SiLU as one operation on the CPU. Separate operations write the normalized
//! values to memory and read them again, in both directions, and keep them for the backward pass.

#![expect(unsafe_code, reason = "calls the shim's batch_norm_silu")]

use std::ptr;

use tch::{Device, Kind, Tensor};

use crate::error::Result;
use crate::ffi;

/// Whether [`batch_norm_silu`] can take this input, float32 on the CPU with four dimensions, and is faster than separate
/// operations: it is not where the shim was compiled without the OpenMP of libtorch, because then it uses one thread.
#[must_use]
pub fn can_batch_norm_silu(input: &Tensor) -> bool {
    let kind = input.f_kind().is_ok_and(|kind| kind == Kind::Float);
    // SAFETY: it takes no arguments, and only reads a setting of libtorch.
    let uses_threads = || unsafe { ffi::tcht_batch_norm_silu_uses_threads() } == 1;
    kind && input.device() == Device::Cpu && input.dim() == 4 && uses_threads()
}

/// Normalizes `input` (N, C, H, W) per channel with the mean and variance of the batch, scales by `weight`, shifts by
/// `bias`, and applies SiLU. The result is in channels_last. `running_mean` and `running_var` are updated in place;
/// `momentum` is the weight of the new statistics, as in PyTorch. The result does not depend on the number of threads.
///
/// # Errors
/// If the input is not float32 on the CPU with four dimensions, the other tensors do not have one float32 number for each channel, or there is
/// only one value per channel, which has no variance.
pub fn batch_norm_silu(
    input: &Tensor,
    [weight, bias]: [&Tensor; 2],
    [running_mean, running_var]: [&Tensor; 2],
    momentum: f64,
    eps: f64,
) -> Result<Tensor> {
    let mut output = ptr::null_mut();
    // SAFETY: the tensors are alive during the call, the graph keeps references of its own, and `output` is local.
    let status = unsafe {
        ffi::tcht_batch_norm_silu(
            ffi::pointer(input),
            ffi::pointer(weight),
            ffi::pointer(bias),
            ffi::pointer(running_mean),
            ffi::pointer(running_var),
            momentum,
            eps,
            &raw mut output,
        )
    };
    ffi::check(status, || "batch normalization with SiLU".to_owned())?;
    // SAFETY: on success the shim allocated a tensor handle, and we are its only owner.
    Ok(unsafe { Tensor::from_ptr(output.cast()) })
}

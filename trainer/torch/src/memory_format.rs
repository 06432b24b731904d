//! The channels_last layout of (N, C, H, W) tensors, in which many devices run convolutions faster.

#![expect(unsafe_code, reason = "calls the shim's memory format functions")]

use std::ptr;

use tch::Tensor;

use crate::error::Result;
use crate::ffi;

/// The tensor in channels_last. If it already has that layout, the result shares its memory.
///
/// # Errors
/// If the tensor does not have four dimensions.
pub fn to_channels_last(tensor: &Tensor) -> Result<Tensor> {
    let mut output = ptr::null_mut();
    // SAFETY: the tensor is alive during the call, and `output` is local.
    let status = unsafe { ffi::tcht_to_channels_last(ffi::pointer(tensor), &raw mut output) };
    ffi::check(status, || "converting to channels_last".to_owned())?;
    // SAFETY: on success the shim allocated a tensor handle, and we are its only owner.
    Ok(unsafe { Tensor::from_ptr(output.cast()) })
}

/// Changes the layout of a parameter in place. It stays the same leaf, with the same values, shape
/// and optimizer state. Call it before you build a Reducer.
///
/// # Errors
/// If the tensor does not have four dimensions.
pub fn set_channels_last(parameter: &Tensor) -> Result<()> {
    // SAFETY: the tensor is alive during the call.
    let status = unsafe { ffi::tcht_set_channels_last(ffi::pointer(parameter)) };
    ffi::check(status, || "converting a parameter to channels_last".to_owned())
}

/// Whether the tensor's memory layout is channels_last.
///
/// # Errors
/// If the tensor is undefined.
pub fn is_channels_last(tensor: &Tensor) -> Result<bool> {
    let mut answer = 0;
    // SAFETY: the tensor is alive during the call, and `answer` is local.
    let status = unsafe { ffi::tcht_is_channels_last(ffi::pointer(tensor), &raw mut answer) };
    ffi::check(status, || "reading the memory format".to_owned())?;
    Ok(answer != 0)
}

//! The channels_last layout of (N, C, H, W) tensors, in which convolutions on
//! many devices are faster.

#![expect(unsafe_code, reason = "calls the shim's memory format functions")]

use std::ptr;

use tch::Tensor;

use crate::error::Result;
use crate::ffi;

/// The tensor in channels_last; the same one, shared, if it is so already.
///
/// # Errors
/// When it does not have four dimensions.
pub fn to_channels_last(tensor: &Tensor) -> Result<Tensor> {
    let mut output = ptr::null_mut();
    // SAFETY: the tensor is alive during the call; `output` is local.
    let status = unsafe { ffi::tchd_to_channels_last(ffi::pointer(tensor), &raw mut output) };
    ffi::check(status, || "changing to channels_last".to_owned())?;
    // SAFETY: on success the shim made a new tensor handle that is ours.
    Ok(unsafe { Tensor::from_ptr(output.cast()) })
}

/// Changes the layout of a parameter in place: it stays the same leaf, with the
/// same values, shape and optimizer state. Do it before a Reducer is made.
///
/// # Errors
/// When it does not have four dimensions.
pub fn set_channels_last(parameter: &Tensor) -> Result<()> {
    // SAFETY: the tensor is alive during the call.
    let status = unsafe { ffi::tchd_set_channels_last(ffi::pointer(parameter)) };
    ffi::check(status, || "changing a parameter to channels_last".to_owned())
}

/// Whether the tensor lies in memory as channels_last.
///
/// # Errors
/// When the tensor is undefined.
pub fn is_channels_last(tensor: &Tensor) -> Result<bool> {
    let mut answer = 0;
    // SAFETY: the tensor is alive during the call; `answer` is local.
    let status = unsafe { ffi::tchd_is_channels_last(ffi::pointer(tensor), &raw mut answer) };
    ffi::check(status, || "asking for the memory format".to_owned())?;
    Ok(answer != 0)
}

//! Copies from the CPU to a device that do not wait for the device.

#![expect(unsafe_code, reason = "calls the shim's function for page-locked memory")]

use std::ptr;

use tch::{Device, Tensor};

use crate::error::{Error, Result};
use crate::ffi;

/// Copies a CPU tensor to `device`. To a GPU, the copy goes through page-locked memory and is queued
/// on the current stream; an ordinary copy would make the host wait for all queued work. libtorch
/// keeps the page-locked memory until the copy is done. If the system refuses it, the tensor's own memory
/// is copied. On the CPU, the result shares the tensor's memory.
///
/// # Errors
/// If memory runs out, or libtorch does not support the device.
pub fn copy_to_device(tensor: &Tensor, device: Device) -> Result<Tensor> {
    let copy = if device.is_cuda() {
        let pinned = page_locked(tensor).unwrap_or_else(|_| tensor.shallow_clone());
        pinned.f_to_device_(device, tensor.kind(), true, false)
    } else {
        tensor.f_to_device(device)
    };
    copy.map_err(|error| Error::from_tch(format!("copying to {device:?}"), &error))
}

/// A CPU tensor in page-locked memory: a copy, or the tensor itself if it is there already. tch's own function names a
/// device, about which libtorch warns at each call.
///
/// # Errors
/// If there is no CUDA, or the system refuses the memory.
pub fn page_locked(tensor: &Tensor) -> Result<Tensor> {
    let mut copy = ptr::null_mut();
    // SAFETY: the tensor is alive during the call, and the out pointer is local.
    let status = unsafe { ffi::tcht_in_page_locked(ffi::pointer(tensor), &raw mut copy) };
    ffi::check(status, || "copying to page-locked memory".to_owned())?;
    // SAFETY: on success the shim allocated a tensor handle, and we are its only owner.
    Ok(unsafe { Tensor::from_ptr(copy.cast()) })
}

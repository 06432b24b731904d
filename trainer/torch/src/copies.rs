//! Copies from the CPU to a device that do not wait for the device.

use tch::{Device, Tensor};

use crate::error::{Error, Result};

/// Copies a CPU tensor to `device`. To a GPU, the copy goes through page-locked memory and is queued
/// on the current stream; an ordinary copy would make the host wait for all queued work. libtorch
/// keeps the page-locked memory until the copy is done. If the system refuses it, the tensor's own memory
/// is copied. On the CPU, the result shares the tensor's memory.
///
/// # Errors
/// If memory runs out, or libtorch does not support the device.
pub fn copy_to_device(tensor: &Tensor, device: Device) -> Result<Tensor> {
    let copy = if device.is_cuda() {
        let pinned = tensor.f_pin_memory(device).unwrap_or_else(|_| tensor.shallow_clone());
        pinned.f_to_device_(device, tensor.kind(), true, false)
    } else {
        tensor.f_to_device(device)
    };
    copy.map_err(|error| Error::from_tch(format!("copying to {device:?}"), &error))
}

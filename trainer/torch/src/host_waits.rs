//! Counts how often the host waits for a GPU. Each wait leaves the GPU idle until the host has given it
//! new work, so a training step should have as few as possible.

#![expect(unsafe_code, reason = "calls the shim's counter")]

use crate::error::Result;
use crate::ffi;

/// How often libtorch has waited for a GPU since the first call, which begins to count: by reading a
/// value of a tensor on the GPU, by copying to or from memory that is not page-locked, or by
/// synchronizing. The count is that of all threads. Waits inside CUDA's own libraries, for example
/// when memory is allocated, are not counted. Without a GPU it is always 0.
///
/// # Errors
/// If something else in this process, such as a Python interpreter, observes libtorch's use of the GPU.
pub fn host_waits() -> Result<u64> {
    let mut waits = 0;
    // SAFETY: the out pointer is local.
    let status = unsafe { ffi::tcht_host_waits(&raw mut waits) };
    ffi::check(status, || "counting how often the host waits for the GPU".to_owned())?;
    Ok(waits)
}

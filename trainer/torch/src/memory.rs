//! The memory that libtorch has taken on a GPU.

#![expect(unsafe_code, reason = "calls the shim")]

use crate::error::Result;
use crate::ffi;

/// The most memory in bytes that libtorch has reserved on a CUDA device since the process started, used
/// or kept for reuse. It is what PyTorch calls `max_memory_reserved`; the driver needs some more.
///
/// # Errors
/// If there is no CUDA, or no such device, or libtorch has not used it yet.
pub fn peak_reserved_memory(device: usize) -> Result<u64> {
    reserved(device).map(|(_, peak)| peak)
}

/// The memory in bytes that libtorch has reserved on a CUDA device now, used or kept for reuse. It is what
/// PyTorch calls `memory_reserved`. Does not wait for the device.
///
/// # Errors
/// As [`peak_reserved_memory`].
pub fn reserved_memory(device: usize) -> Result<u64> {
    reserved(device).map(|(now, _)| now)
}

/// Returns to the driver what libtorch keeps for reuse, begins a new peak on this CUDA device, and returns the bytes
/// that are free there. What tensors use stays reserved.
///
/// # Errors
/// As [`peak_reserved_memory`].
pub fn release_memory(device: usize) -> Result<u64> {
    let mut free = 0;
    // SAFETY: the out pointer is local.
    let status = unsafe { ffi::tcht_release_memory(index_of(device), &raw mut free) };
    ffi::check(status, || format!("releasing the memory of cuda:{device}"))?;
    Ok(free)
}

fn index_of(device: usize) -> i32 {
    i32::try_from(device).unwrap_or(i32::MAX)
}

/// The reserved bytes now, and their peak.
fn reserved(device: usize) -> Result<(u64, u64)> {
    let (mut now, mut peak) = (0, 0);
    let index = index_of(device);
    // SAFETY: the out pointers are local.
    let status = unsafe { ffi::tcht_reserved_memory(index, &raw mut now, &raw mut peak) };
    ffi::check(status, || format!("reading the memory of cuda:{device}"))?;
    Ok((now, peak))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_does_not_exist_is_an_error() {
        let error = peak_reserved_memory(4096).unwrap_err().to_string();
        assert!(error.contains("cuda:4096"), "{error}");
        let error = release_memory(4096).unwrap_err().to_string();
        assert!(error.contains("cuda:4096"), "{error}");
    }
}

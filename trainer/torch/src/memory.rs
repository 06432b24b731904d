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
    let mut bytes = 0;
    let index = i32::try_from(device).unwrap_or(i32::MAX);
    // SAFETY: the out pointer is local.
    let status = unsafe { ffi::tcht_peak_reserved_memory(index, &raw mut bytes) };
    ffi::check(status, || format!("reading the peak of the memory of cuda:{device}"))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_does_not_exist_is_an_error() {
        let error = peak_reserved_memory(4096).unwrap_err().to_string();
        assert!(error.contains("cuda:4096"), "{error}");
    }
}

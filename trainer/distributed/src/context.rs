//! Switches of libtorch that hold for the whole process.

#![expect(unsafe_code, reason = "calls the shim's context functions")]

use crate::error::{Error, ErrorKind, Result};
use crate::ffi;

/// Sets how many threads an operation on the CPU may use. Several ranks on one
/// machine should share its cores, not each take all.
///
/// # Errors
/// When it is 0 or far too large.
pub fn set_num_threads(threads: usize) -> Result<()> {
    let action = || format!("setting the number of threads to {threads}");
    let number = i32::try_from(threads)
        .ok()
        .filter(|&number| number > 0)
        .ok_or_else(|| Error::new(ErrorKind::Other, action(), "there must be at least one"))?;
    // SAFETY: a plain number.
    let status = unsafe { ffi::tchd_set_num_threads(number) };
    ffi::check(status, action)
}

/// Chooses deterministic algorithms. Where an operation has none, libtorch only
/// warns when `warn_only`, else the operation fails.
///
/// # Errors
/// When libtorch refuses.
pub fn set_deterministic(enabled: bool, warn_only: bool) -> Result<()> {
    // SAFETY: plain flags.
    let status = unsafe { ffi::tchd_set_deterministic(enabled.into(), warn_only.into()) };
    ffi::check(status, || "choosing deterministic algorithms".to_owned())
}

/// Allows TF32 in matrix products and convolutions on CUDA: faster, with ten
/// bits of mantissa.
///
/// # Errors
/// When libtorch refuses.
pub fn set_allow_tf32(enabled: bool) -> Result<()> {
    // SAFETY: a plain flag.
    let status = unsafe { ffi::tchd_set_allow_tf32(enabled.into()) };
    ffi::check(status, || "setting TF32".to_owned())
}

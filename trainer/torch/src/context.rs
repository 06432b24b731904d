//! Process-wide settings of libtorch.

#![expect(unsafe_code, reason = "calls the shim's context functions")]

use crate::error::{Error, Result};
use crate::ffi;

/// Whether libtorch may use nondeterministic algorithms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Determinism {
    /// The fastest algorithm, deterministic or not.
    #[default]
    Off,
    /// Deterministic algorithms, and a warning from operations that have none.
    Warn,
    /// Deterministic algorithms, and an error from operations that have none.
    Require,
}

/// Sets how many threads an operation on the CPU may use. Ranks on one machine must share its
/// cores: with all cores for each of them, they slow each other down.
///
/// # Errors
/// If `threads` is 0 or does not fit in an `i32`.
pub fn set_num_threads(threads: usize) -> Result<()> {
    let action = || format!("setting the number of threads to {threads}");
    let number = i32::try_from(threads)
        .ok()
        .filter(|&number| number > 0)
        .ok_or_else(|| Error::new(action(), format!("it must be from 1 to {}", i32::MAX)))?;
    // SAFETY: takes a plain number.
    let status = unsafe { ffi::tcht_set_num_threads(number) };
    ffi::check(status, action)
}

/// Selects deterministic algorithms for the whole process.
///
/// # Errors
/// If libtorch refuses.
pub fn set_determinism(determinism: Determinism) -> Result<()> {
    let enabled = determinism != Determinism::Off;
    let warn_only = determinism == Determinism::Warn;
    // SAFETY: takes plain flags.
    let status = unsafe { ffi::tcht_set_deterministic(enabled.into(), warn_only.into()) };
    ffi::check(status, || "selecting deterministic algorithms".to_owned())
}

/// The current setting; see [`set_determinism`].
///
/// # Errors
/// If libtorch refuses.
pub fn determinism() -> Result<Determinism> {
    let (mut enabled, mut warn_only) = (0, 0);
    // SAFETY: both out pointers are local.
    let status = unsafe { ffi::tcht_deterministic(&raw mut enabled, &raw mut warn_only) };
    ffi::check(status, || "reading the determinism setting".to_owned())?;
    Ok(match (enabled != 0, warn_only != 0) {
        (false, _) => Determinism::Off,
        (true, true) => Determinism::Warn,
        (true, false) => Determinism::Require,
    })
}

/// Lets cuDNN try its algorithms for each new shape and keep the fastest, which pays if shapes are few. Does nothing
/// with deterministic algorithms ([`set_determinism`]): which one is the fastest is not always the same.
///
/// # Errors
/// If libtorch refuses.
pub fn set_cudnn_benchmark(enabled: bool) -> Result<()> {
    // SAFETY: takes a plain flag.
    let status = unsafe { ffi::tcht_set_cudnn_benchmark(enabled.into()) };
    ffi::check(status, || "choosing how cuDNN finds algorithms".to_owned())
}

/// Whether cuDNN tries its algorithms.
///
/// # Errors
/// If libtorch refuses.
pub fn cudnn_benchmark() -> Result<bool> {
    let mut enabled = 0;
    // SAFETY: the out pointer is local.
    let status = unsafe { ffi::tcht_cudnn_benchmark(&raw mut enabled) };
    ffi::check(status, || "reading how cuDNN finds algorithms".to_owned())?;
    Ok(enabled != 0)
}

/// Allows TF32 in matrix products and convolutions on CUDA. It is faster than float32 and has a
/// 10-bit mantissa.
///
/// # Errors
/// If libtorch refuses.
pub fn set_allow_tf32(allow: bool) -> Result<()> {
    // SAFETY: takes a plain flag.
    let status = unsafe { ffi::tcht_set_allow_tf32(allow.into()) };
    ffi::check(status, || "setting TF32".to_owned())
}

/// Whether matrix products and convolutions on CUDA may both use TF32.
///
/// # Errors
/// If libtorch refuses.
pub fn allows_tf32() -> Result<bool> {
    let mut enabled = 0;
    // SAFETY: the out pointer is local.
    let status = unsafe { ffi::tcht_allow_tf32(&raw mut enabled) };
    ffi::check(status, || "reading the TF32 setting".to_owned())?;
    Ok(enabled != 0)
}

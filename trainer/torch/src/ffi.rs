//! The C ABI of `csrc/`, one block per header, and helpers that turn its status into a `Result`.

#![expect(unsafe_code, reason = "declares the C ABI of the shim")]

use std::borrow::Borrow;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::{offset_of, size_of};

use tch::Tensor;

use crate::error::{Error, Result};

/// `at::Tensor*`, the pointer in tch's `as_ptr` and `from_ptr`.
pub(crate) type TensorPtr = *mut c_void;

/// `tcht::Autocast`, which only C++ looks into.
#[repr(C)]
pub(crate) struct Autocast {
    _private: [u8; 0],
    /// Neither Send nor Sync: autocast is a state of the current thread.
    _thread: std::marker::PhantomData<*mut ()>,
}

/// `tcht::CopyStream`, which only C++ looks into.
#[repr(C)]
pub(crate) struct CopyStream {
    _private: [u8; 0],
    /// Neither Send nor Sync: which stream is the current one is a state of the thread.
    _thread: std::marker::PhantomData<*mut ()>,
}

/// `tcht::Event`, which only C++ looks into.
#[repr(C)]
pub(crate) struct Event {
    _private: [u8; 0],
    /// Neither Send nor Sync, as c10's events.
    _thread: std::marker::PhantomData<*mut ()>,
}

/// `tcht::SgdOptions`.
#[repr(C)]
pub(crate) struct SgdOptions {
    pub(crate) lr: f64,
    pub(crate) momentum: f64,
    pub(crate) dampening: f64,
    pub(crate) weight_decay: f64,
    pub(crate) nesterov: i32,
    pub(crate) first_step: i32,
}

/// `tcht::AdamOptions`.
#[repr(C)]
pub(crate) struct AdamOptions {
    pub(crate) lr: f64,
    pub(crate) beta1: f64,
    pub(crate) beta2: f64,
    pub(crate) eps: f64,
    pub(crate) weight_decay: f64,
    pub(crate) decoupled: i32,
}

// optimizer.h asserts the same numbers.
const _: () = assert!(size_of::<SgdOptions>() == 40 && offset_of!(SgdOptions, first_step) == 36);
const _: () = assert!(size_of::<AdamOptions>() == 48 && offset_of!(AdamOptions, decoupled) == 40);

// error.cpp
unsafe extern "C" {
    fn tcht_last_error() -> *const c_char;
}

// optimizer.h
unsafe extern "C" {
    pub(crate) fn tcht_fused_sgd(
        parameters: *const TensorPtr,
        gradients: *const TensorPtr,
        buffers: *const TensorPtr,
        count: usize,
        options: *const SgdOptions,
        grad_scale: TensorPtr,
        found_inf: TensorPtr,
    ) -> c_int;
    pub(crate) fn tcht_fused_adam(
        parameters: *const TensorPtr,
        gradients: *const TensorPtr,
        first_moments: *const TensorPtr,
        second_moments: *const TensorPtr,
        steps: *const TensorPtr,
        count: usize,
        options: *const AdamOptions,
        grad_scale: TensorPtr,
        found_inf: TensorPtr,
    ) -> c_int;
    pub(crate) fn tcht_foreach_zero(tensors: *const TensorPtr, count: usize) -> c_int;
    pub(crate) fn tcht_foreach_mul(tensors: *const TensorPtr, count: usize, factor: f64) -> c_int;
    pub(crate) fn tcht_foreach_ema(
        averages: *const TensorPtr,
        values: *const TensorPtr,
        count: usize,
        decay: f64,
    ) -> c_int;
    pub(crate) fn tcht_clip_grad_norm(
        gradients: *const TensorPtr,
        count: usize,
        max_norm: f64,
        norm: *mut TensorPtr,
    ) -> c_int;
    pub(crate) fn tcht_clip_scaled(
        gradients: *const TensorPtr,
        count: usize,
        max_norm: f64,
        scale: TensorPtr,
        norm: *mut TensorPtr,
        grad_scale: *mut TensorPtr,
        found_inf: *mut TensorPtr,
    ) -> c_int;
    pub(crate) fn tcht_amp_update_scale(
        scale: TensorPtr,
        tracker: TensorPtr,
        found_inf: TensorPtr,
        growth_factor: f64,
        backoff_factor: f64,
        growth_interval: i64,
    ) -> c_int;
    pub(crate) fn tcht_amp_unscale(
        gradients: *const TensorPtr,
        count: usize,
        found_inf: TensorPtr,
        inverse_scale: TensorPtr,
    ) -> c_int;
}

// autocast.h
unsafe extern "C" {
    pub(crate) fn tcht_autocast_enter(
        device_type: i32,
        scalar_type: i32,
        enabled: i32,
        out: *mut *mut Autocast,
    ) -> c_int;
    pub(crate) fn tcht_autocast_exit(autocast: *mut Autocast);
}

// host_waits.h
unsafe extern "C" {
    pub(crate) fn tcht_host_waits(waits: *mut u64) -> c_int;
}

// memory.h
unsafe extern "C" {
    pub(crate) fn tcht_reserved_memory(device: i32, bytes: *mut u64, peak: *mut u64) -> c_int;
    pub(crate) fn tcht_release_memory(device: i32, free: *mut u64) -> c_int;
}

// streams.h
unsafe extern "C" {
    pub(crate) fn tcht_copy_stream_new(device: i32, out: *mut *mut CopyStream) -> c_int;
    pub(crate) fn tcht_copy_stream_free(stream: *mut CopyStream);
    pub(crate) fn tcht_page_locked(bytes: i64, out: *mut TensorPtr) -> c_int;
    pub(crate) fn tcht_in_page_locked(tensor: TensorPtr, out: *mut TensorPtr) -> c_int;
    pub(crate) fn tcht_copy_stream_copy(
        stream: *mut CopyStream,
        tensor: TensorPtr,
        out: *mut TensorPtr,
        done: *mut *mut Event,
    ) -> c_int;
    pub(crate) fn tcht_wait_for_copy(copy: TensorPtr, done: *mut Event) -> c_int;
    pub(crate) fn tcht_copy_to_host(tensor: TensorPtr, out: *mut TensorPtr, done: *mut *mut Event) -> c_int;
    pub(crate) fn tcht_event_is_done(event: *mut Event, done: *mut i32) -> c_int;
    pub(crate) fn tcht_event_wait(event: *mut Event) -> c_int;
    pub(crate) fn tcht_event_now(device: i32, out: *mut *mut Event) -> c_int;
    pub(crate) fn tcht_seconds_between(begin: *mut Event, end: *mut Event, out: *mut f64) -> c_int;
    pub(crate) fn tcht_event_free(event: *mut Event);
}

// batch_norm_silu.h
unsafe extern "C" {
    pub(crate) fn tcht_batch_norm_silu_uses_threads() -> c_int;
    pub(crate) fn tcht_batch_norm_silu(
        input: TensorPtr,
        weight: TensorPtr,
        bias: TensorPtr,
        running_mean: TensorPtr,
        running_var: TensorPtr,
        momentum: f64,
        eps: f64,
        out: *mut TensorPtr,
    ) -> c_int;
}

// memory_format.h
unsafe extern "C" {
    pub(crate) fn tcht_to_channels_last(tensor: TensorPtr, out: *mut TensorPtr) -> c_int;
    pub(crate) fn tcht_set_channels_last(parameter: TensorPtr) -> c_int;
    pub(crate) fn tcht_is_channels_last(tensor: TensorPtr, answer: *mut c_int) -> c_int;
}

// context.h
unsafe extern "C" {
    pub(crate) fn tcht_set_num_threads(threads: i32) -> c_int;
    pub(crate) fn tcht_set_deterministic(enabled: i32, warn_only: i32) -> c_int;
    pub(crate) fn tcht_deterministic(enabled: *mut i32, warn_only: *mut i32) -> c_int;
    pub(crate) fn tcht_set_cudnn_benchmark(enabled: i32) -> c_int;
    pub(crate) fn tcht_cudnn_benchmark(enabled: *mut i32) -> c_int;
    pub(crate) fn tcht_set_allow_tf32(enabled: i32) -> c_int;
    pub(crate) fn tcht_allow_tf32(enabled: *mut i32) -> c_int;
}

/// Turns the status of a shim function into a `Result` with the thread's error text. Call it right
/// after the function, on the same thread. `action` is called only on error.
pub(crate) fn check(status: c_int, action: impl FnOnce() -> String) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    // SAFETY: the shim returns a NUL-terminated string that stays valid until the next call on this
    // thread fails; it is copied before that.
    let text = unsafe { CStr::from_ptr(tcht_last_error()) }.to_string_lossy().into_owned();
    Err(Error::from_libtorch(action(), &text))
}

/// The pointer to a tensor's handle. It is valid while `tensor` is; the shim copies the handle and
/// keeps no pointer to it.
pub(crate) fn pointer(tensor: &Tensor) -> TensorPtr {
    tensor.as_ptr().cast_mut().cast()
}

/// The pointers to the handles of a list of tensors; see [`pointer()`].
pub(crate) fn pointers<T: Borrow<Tensor>>(tensors: &[T]) -> Vec<TensorPtr> {
    tensors.iter().map(|tensor| pointer(tensor.borrow())).collect()
}

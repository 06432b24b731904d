//! The C ABI of `csrc/`, one block a header, and the few helpers that turn its
//! answers into `Result`. Everything unsafe in this crate goes through here.

#![expect(unsafe_code, reason = "declares the C ABI of the shim")]

use std::borrow::Borrow;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::time::Duration;

use tch::Tensor;

use crate::error::{Error, ErrorKind, Result};

/// `at::Tensor*`: what tch's `as_ptr` and `from_ptr` hold.
pub(crate) type TensorPtr = *mut c_void;

/// Opaque C++ types. They are only ever behind pointers.
macro_rules! opaque {
    ($($name:ident),*) => {$(
        #[repr(C)]
        pub(crate) struct $name {
            _private: [u8; 0],
            /// Neither Send nor Sync: the C++ objects are tied to one thread at a time.
            _thread: std::marker::PhantomData<*mut ()>,
        }
    )*};
}
opaque!(Store, Group, Reducer);

/// `tchd::ReducerOptions`.
#[repr(C)]
pub(crate) struct ReducerOptions {
    pub(crate) bucket_bytes: i64,
    pub(crate) first_bucket_bytes: i64,
    pub(crate) find_unused_parameters: i32,
    pub(crate) gradient_as_bucket_view: i32,
    pub(crate) hook: i32,
}

/// `tchd::ReducerStats`.
#[repr(C)]
#[derive(Default)]
pub(crate) struct ReducerStats {
    pub(crate) buckets: i64,
    pub(crate) rebuilt: i64,
    pub(crate) forward_ns: i64,
    pub(crate) backward_ns: i64,
    pub(crate) communication_ns: i64,
    pub(crate) overlap_ns: i64,
}

/// `tchd::BucketLaunch`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct BucketLaunch {
    pub(crate) bucket: i64,
    pub(crate) elements: i64,
    pub(crate) gradients_ready: i64,
}

// error.h
unsafe extern "C" {
    fn tchd_last_error() -> *const c_char;
}

// store.h
unsafe extern "C" {
    pub(crate) fn tchd_store_serve(
        listen_fd: c_int,
        host: *const c_char,
        port: u16,
        timeout_ms: i64,
        out: *mut *mut Store,
    ) -> c_int;
    pub(crate) fn tchd_store_connect(
        host: *const c_char,
        port: u16,
        timeout_ms: i64,
        out: *mut *mut Store,
    ) -> c_int;
    pub(crate) fn tchd_store_set(
        store: *mut Store,
        key: *const c_char,
        value: *const u8,
        length: usize,
    ) -> c_int;
    pub(crate) fn tchd_store_get(
        store: *mut Store,
        key: *const c_char,
        value: *mut *mut u8,
        length: *mut usize,
    ) -> c_int;
    pub(crate) fn tchd_store_add(store: *mut Store, key: *const c_char, amount: i64, sum: *mut i64) -> c_int;
    pub(crate) fn tchd_store_wait(
        store: *mut Store,
        keys: *const *const c_char,
        count: usize,
        timeout_ms: i64,
    ) -> c_int;
    pub(crate) fn tchd_bytes_free(bytes: *mut u8);
    pub(crate) fn tchd_store_free(store: *mut Store);
}

// process_group.h
unsafe extern "C" {
    pub(crate) fn tchd_group_gloo(
        store: *mut Store,
        name: *const c_char,
        rank: c_int,
        world: c_int,
        address: *const c_char,
        interface_name: *const c_char,
        timeout_ms: i64,
        threads: c_int,
        out: *mut *mut Group,
    ) -> c_int;
    pub(crate) fn tchd_group_all_reduce(group: *mut Group, tensor: TensorPtr) -> c_int;
    pub(crate) fn tchd_group_broadcast(
        group: *mut Group,
        tensors: *const TensorPtr,
        count: usize,
        root: c_int,
    ) -> c_int;
    pub(crate) fn tchd_group_all_gather(
        group: *mut Group,
        input: TensorPtr,
        outputs: *const TensorPtr,
        world: usize,
    ) -> c_int;
    pub(crate) fn tchd_group_barrier(group: *mut Group, timeout_ms: i64) -> c_int;
    pub(crate) fn tchd_group_verify_shapes(
        group: *mut Group,
        tensors: *const TensorPtr,
        count: usize,
    ) -> c_int;
    pub(crate) fn tchd_group_free(group: *mut Group);
}

// reducer.h
unsafe extern "C" {
    pub(crate) fn tchd_reducer_new(
        group: *mut Group,
        parameters: *const TensorPtr,
        count: usize,
        options: *const ReducerOptions,
        out: *mut *mut Reducer,
    ) -> c_int;
    pub(crate) fn tchd_reducer_prepare_forward(reducer: *mut Reducer) -> c_int;
    pub(crate) fn tchd_reducer_prepare_backward(
        reducer: *mut Reducer,
        outputs: *const TensorPtr,
        count: usize,
    ) -> c_int;
    pub(crate) fn tchd_reducer_stats(reducer: *mut Reducer, out: *mut ReducerStats) -> c_int;
    pub(crate) fn tchd_reducer_take_launches(
        reducer: *mut Reducer,
        out: *mut BucketLaunch,
        capacity: usize,
        count: *mut usize,
    ) -> c_int;
    pub(crate) fn tchd_reducer_free(reducer: *mut Reducer);
}

// sync_batch_norm.h
unsafe extern "C" {
    pub(crate) fn tchd_sync_batch_norm(
        group: *mut Group,
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

/// Turns the status of a shim function, called on this thread just now, into a
/// `Result` with the thread's error text. `action` is asked only on error.
pub(crate) fn check(status: c_int, action: impl FnOnce() -> String) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    // SAFETY: the shim answers a NUL-ended text that stays until the next
    // failing call on this thread; it is copied before that.
    let text = unsafe { CStr::from_ptr(tchd_last_error()) }.to_string_lossy().into_owned();
    Err(Error::from_libtorch(action(), &text))
}

/// The pointer of one tensor. The shim copies the handle that it points to
/// before it returns, so it need not outlive the call.
pub(crate) fn pointer(tensor: &Tensor) -> TensorPtr {
    tensor.as_ptr().cast_mut().cast()
}

/// The pointers of a list of tensors.
pub(crate) fn pointers<T: Borrow<Tensor>>(tensors: &[T]) -> Vec<TensorPtr> {
    tensors.iter().map(|tensor| pointer(tensor.borrow())).collect()
}

/// A text for C++.
pub(crate) fn c_string(text: &str, what: &str) -> Result<CString> {
    CString::new(text)
        .map_err(|_| Error::new(ErrorKind::Other, what, format!("{text:?} holds a NUL character")))
}

/// A duration as C++ takes it; at least one millisecond, since 0 means "for ever" or "none".
pub(crate) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX).max(1)
}

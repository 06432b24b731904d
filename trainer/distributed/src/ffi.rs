//! The C ABI of `csrc/`, one block per header, and helpers that turn its status into a `Result`.

#![expect(unsafe_code, reason = "declares the C ABI of the shim")]

use std::borrow::Borrow;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::{offset_of, size_of};
use std::time::Duration;

use tch::Tensor;

use crate::error::{Error, ErrorKind, Result};

/// `at::Tensor*`, the pointer in tch's `as_ptr` and `from_ptr`.
pub(crate) type TensorPtr = *mut c_void;

/// C++ types that only C++ looks into.
macro_rules! opaque {
    ($($name:ident),*) => {$(
        #[repr(C)]
        pub(crate) struct $name {
            _private: [u8; 0],
            /// Neither Send nor Sync, unless a wrapper argues for it.
            _thread: std::marker::PhantomData<*mut ()>,
        }
    )*};
}
opaque!(Store, Group, C10dGroup, GlooDevice, NcclAbort, Reducer, Work);

/// `tchd::ReducerOptions`.
#[repr(C)]
pub(crate) struct ReducerOptions {
    pub(crate) bucket_bytes: i64,
    pub(crate) first_bucket_bytes: i64,
    pub(crate) find_unused_parameters: i32,
    pub(crate) gradient_as_bucket_view: i32,
    pub(crate) hook: i32,
    pub(crate) static_graph: i32,
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

// reducer.h asserts the same numbers.
const _: () = assert!(size_of::<ReducerOptions>() == 32 && offset_of!(ReducerOptions, static_graph) == 28);
const _: () = assert!(size_of::<ReducerStats>() == 48 && offset_of!(ReducerStats, overlap_ns) == 40);
const _: () = assert!(size_of::<BucketLaunch>() == 24 && offset_of!(BucketLaunch, gradients_ready) == 16);

// error.cpp
unsafe extern "C" {
    fn tchd_last_error() -> *const c_char;
}

// tcp_store.h
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
        connect_ms: i64,
        timeout_ms: i64,
        out: *mut *mut Store,
    ) -> c_int;
}

// store.h
unsafe extern "C" {
    pub(crate) fn tchd_store_hash(timeout_ms: i64, out: *mut *mut Store) -> c_int;
    pub(crate) fn tchd_store_file(
        path: *const c_char,
        users: c_int,
        timeout_ms: i64,
        out: *mut *mut Store,
    ) -> c_int;
    pub(crate) fn tchd_store_prefix(prefix: *const c_char, store: *mut Store, out: *mut *mut Store) -> c_int;
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
    pub(crate) fn tchd_store_check(
        store: *mut Store,
        keys: *const *const c_char,
        count: usize,
        all: *mut c_int,
    ) -> c_int;
    pub(crate) fn tchd_store_delete(store: *mut Store, key: *const c_char, existed: *mut c_int) -> c_int;
    pub(crate) fn tchd_store_compare_set(
        store: *mut Store,
        key: *const c_char,
        expected: *const u8,
        expected_length: usize,
        desired: *const u8,
        desired_length: usize,
        value: *mut *mut u8,
        length: *mut usize,
    ) -> c_int;
    pub(crate) fn tchd_store_num_keys(store: *mut Store, count: *mut i64) -> c_int;
    pub(crate) fn tchd_bytes_free(bytes: *mut u8);
    pub(crate) fn tchd_store_free(store: *mut Store);
}

// gloo.h
unsafe extern "C" {
    pub(crate) fn tchd_gloo_device(
        address: *const c_char,
        interface_name: *const c_char,
        out: *mut *mut GlooDevice,
    ) -> c_int;
    pub(crate) fn tchd_gloo_device_free(device: *mut GlooDevice);
    pub(crate) fn tchd_group_gloo(
        store: *mut Store,
        name: *const c_char,
        rank: c_int,
        world: c_int,
        device: *mut GlooDevice,
        timeout_ms: i64,
        threads: c_int,
        out: *mut *mut Group,
    ) -> c_int;
}

// nccl.h
unsafe extern "C" {
    pub(crate) fn tchd_torch_version() -> *const c_char;
    pub(crate) fn tchd_group_c10d(group: *mut Group) -> *mut C10dGroup;
    pub(crate) fn tchd_nccl_error(group: *mut Group, out: *mut c_int) -> c_int;
    pub(crate) fn tchd_nccl_abort_new(group: *mut Group, out: *mut *mut NcclAbort) -> c_int;
    pub(crate) fn tchd_nccl_abort(abort: *mut NcclAbort) -> c_int;
    pub(crate) fn tchd_nccl_abort_free(abort: *mut NcclAbort);
}

// process_group.h
unsafe extern "C" {
    pub(crate) fn tchd_group_broadcast(
        group: *mut Group,
        tensors: *const TensorPtr,
        count: usize,
        root: c_int,
    ) -> c_int;
    pub(crate) fn tchd_group_barrier(group: *mut Group, timeout_ms: i64) -> c_int;
    pub(crate) fn tchd_group_monitored_barrier(group: *mut Group, timeout_ms: i64) -> c_int;
    pub(crate) fn tchd_group_set_timeout(group: *mut Group, timeout_ms: i64) -> c_int;
    pub(crate) fn tchd_group_verify_shapes(
        group: *mut Group,
        tensors: *const TensorPtr,
        count: usize,
    ) -> c_int;
    pub(crate) fn tchd_group_free(group: *mut Group);
}

// work.h
unsafe extern "C" {
    pub(crate) fn tchd_work_wait(work: *mut Work, timeout_ms: i64) -> c_int;
    pub(crate) fn tchd_work_is_completed(work: *mut Work, done: *mut c_int) -> c_int;
    pub(crate) fn tchd_work_source(work: *mut Work, rank: *mut c_int) -> c_int;
    pub(crate) fn tchd_work_free(work: *mut Work);
}

// collectives.h
unsafe extern "C" {
    pub(crate) fn tchd_all_reduce(
        group: *mut Group,
        tensor: TensorPtr,
        operation: c_int,
        factor: f64,
        timeout_ms: i64,
        out: *mut *mut Work,
    ) -> c_int;
    pub(crate) fn tchd_reduce(
        group: *mut Group,
        tensor: TensorPtr,
        root: c_int,
        operation: c_int,
        factor: f64,
        timeout_ms: i64,
        out: *mut *mut Work,
    ) -> c_int;
    pub(crate) fn tchd_reduce_scatter(
        group: *mut Group,
        output: TensorPtr,
        input: TensorPtr,
        operation: c_int,
        factor: f64,
        timeout_ms: i64,
        out: *mut *mut Work,
    ) -> c_int;
    pub(crate) fn tchd_all_gather(
        group: *mut Group,
        input: TensorPtr,
        outputs: *const TensorPtr,
        world: usize,
        timeout_ms: i64,
        out: *mut *mut Work,
    ) -> c_int;
    pub(crate) fn tchd_gather(
        group: *mut Group,
        input: TensorPtr,
        outputs: *const TensorPtr,
        count: usize,
        root: c_int,
        timeout_ms: i64,
        out: *mut *mut Work,
    ) -> c_int;
    pub(crate) fn tchd_scatter(
        group: *mut Group,
        output: TensorPtr,
        inputs: *const TensorPtr,
        count: usize,
        root: c_int,
        timeout_ms: i64,
        out: *mut *mut Work,
    ) -> c_int;
    pub(crate) fn tchd_all_to_all(
        group: *mut Group,
        output: TensorPtr,
        input: TensorPtr,
        output_sizes: *const i64,
        input_sizes: *const i64,
        world: usize,
        timeout_ms: i64,
        out: *mut *mut Work,
    ) -> c_int;
    pub(crate) fn tchd_send(
        group: *mut Group,
        tensor: TensorPtr,
        rank: c_int,
        tag: c_int,
        out: *mut *mut Work,
    ) -> c_int;
    pub(crate) fn tchd_receive(
        group: *mut Group,
        tensor: TensorPtr,
        rank: c_int,
        tag: c_int,
        out: *mut *mut Work,
    ) -> c_int;
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
    pub(crate) fn tchd_reducer_finish_backward(reducer: *mut Reducer) -> c_int;
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

/// Turns the status of a shim function into a `Result` with the thread's error text. Call it right
/// after the function, on the same thread. `action` is called only on error.
pub(crate) fn check(status: c_int, action: impl FnOnce() -> String) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    // SAFETY: the shim returns a NUL-terminated string that stays valid until the next call on this
    // thread fails; it is copied before that.
    let text = unsafe { CStr::from_ptr(tchd_last_error()) }.to_string_lossy().into_owned();
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

/// A string for C++.
pub(crate) fn c_string(text: &str, what: &str) -> Result<CString> {
    CString::new(text)
        .map_err(|_| Error::new(ErrorKind::Other, what, format!("{text:?} contains a NUL character")))
}

/// A duration for C++. It is at least one millisecond, because 0 means no timeout at all.
pub(crate) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_never_zero_and_never_overflows() {
        assert_eq!(milliseconds(Duration::ZERO), 1);
        assert_eq!(milliseconds(Duration::from_micros(1)), 1);
        assert_eq!(milliseconds(Duration::from_secs(2)), 2000);
        assert_eq!(milliseconds(Duration::MAX), i64::MAX);
    }

    #[test]
    fn a_string_with_nul_is_refused() {
        let error = c_string("a\0b", "setting a key").unwrap_err();
        assert_eq!(error.to_string(), "setting a key: \"a\\0b\" contains a NUL character");
    }
}

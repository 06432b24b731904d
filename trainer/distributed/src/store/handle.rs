//! The C++ object behind a store, and its operations.

#![expect(unsafe_code, reason = "calls the shim's store functions")]

use std::ffi::{CString, c_char};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Duration;

use super::server::Server;
use crate::error::{Error, ErrorKind, Result};
use crate::ffi;

/// A store of this crate. The trait is private, so that nothing else can be one.
pub trait Backing {
    /// The C++ store.
    fn handle(&self) -> &Handle;
}

/// Owns a reference to a `c10d::Store`.
#[derive(Debug)]
pub struct Handle {
    raw: NonNull<ffi::Store>,
    timeout: Duration,
    server: Option<Arc<Server>>,
}

// SAFETY: the stores of c10d have no thread affinity.
unsafe impl Send for Handle {}
// While one thread waits for a key of a TCPStore, calls of other threads on the same store wait too.
// SAFETY: the operations that are used here lock a mutex of the store: TCPStore its `activeOpLock_`, FileStore its
// `activeFileOpLock_` and the file, HashStore its `m_`. PrefixStore has no state. The time-out, which no mutex
// protects, is set before the store is shared.
unsafe impl Sync for Handle {}

impl Handle {
    /// Takes ownership of a store that the shim allocated. `server` is asked before each operation whether
    /// it responds.
    pub(super) fn own(raw: *mut ffi::Store, timeout: Duration, server: Option<Arc<Server>>) -> Result<Self> {
        let raw = NonNull::new(raw)
            .ok_or_else(|| Error::new(ErrorKind::Other, "opening the store", "libtorch returned no store"))?;
        Ok(Self { raw, timeout, server })
    }

    /// The C++ store. It is valid as long as `self`.
    pub(crate) fn as_ptr(&self) -> *mut ffi::Store {
        self.raw.as_ptr()
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(super) fn server(&self) -> Option<Arc<Server>> {
        self.server.clone()
    }

    /// c10d's client waits forever for a server that is stopped.
    fn responds(&self, action: impl FnOnce() -> String) -> Result<()> {
        match &self.server {
            Some(server) => {
                server.responds(self.timeout).map_err(|(kind, message)| Error::new(kind, action(), message))
            }
            None => Ok(()),
        }
    }

    pub(super) fn set(&self, key: &str, value: &[u8]) -> Result<()> {
        let action = || format!("setting key {key:?} of the store");
        let name = ffi::c_string(key, "setting a key of the store")?;
        self.responds(action)?;
        // SAFETY: the store lives as long as `self`. `name` and `value` outlive the call.
        let status =
            unsafe { ffi::tchd_store_set(self.as_ptr(), name.as_ptr(), value.as_ptr(), value.len()) };
        ffi::check(status, action)
    }

    pub(super) fn get(&self, key: &str) -> Result<Vec<u8>> {
        let action = || format!("waiting for key {key:?} of the store");
        let name = ffi::c_string(key, "reading a key of the store")?;
        self.responds(action)?;
        let (mut bytes, mut length) = (ptr::null_mut(), 0);
        // SAFETY: the store lives as long as `self`. `name` outlives the call, and the out pointers are
        // local.
        let status =
            unsafe { ffi::tchd_store_get(self.as_ptr(), name.as_ptr(), &raw mut bytes, &raw mut length) };
        ffi::check(status, action)?;
        // SAFETY: the call succeeded, so it has allocated `bytes`, and nothing else refers to them.
        Ok(unsafe { take(bytes, length) })
    }

    pub(super) fn add(&self, key: &str, amount: i64) -> Result<i64> {
        let action = || format!("adding to key {key:?} of the store");
        let name = ffi::c_string(key, "adding to a key of the store")?;
        self.responds(action)?;
        let mut sum = 0;
        // SAFETY: the store lives as long as `self`. `name` outlives the call, and `sum` is local.
        let status = unsafe { ffi::tchd_store_add(self.as_ptr(), name.as_ptr(), amount, &raw mut sum) };
        ffi::check(status, action)?;
        Ok(sum)
    }

    pub(super) fn wait(&self, keys: &[&str], timeout: Duration) -> Result<()> {
        let action = || format!("waiting for keys {keys:?} of the store");
        let names = Names::new(keys, "waiting for keys of the store")?;
        self.responds(action)?;
        // SAFETY: the store lives as long as `self`, and `names` outlives the call.
        let status = unsafe {
            ffi::tchd_store_wait(
                self.as_ptr(),
                names.pointers.as_ptr(),
                names.pointers.len(),
                ffi::milliseconds(timeout),
            )
        };
        ffi::check(status, action)
    }

    pub(super) fn check(&self, keys: &[&str]) -> Result<bool> {
        let action = || format!("looking for keys {keys:?} of the store");
        let names = Names::new(keys, "looking for keys of the store")?;
        self.responds(action)?;
        let mut all = 0;
        // SAFETY: the store lives as long as `self`, `names` outlives the call, and `all` is local.
        let status = unsafe {
            ffi::tchd_store_check(self.as_ptr(), names.pointers.as_ptr(), names.pointers.len(), &raw mut all)
        };
        ffi::check(status, action)?;
        Ok(all != 0)
    }

    pub(super) fn delete(&self, key: &str) -> Result<bool> {
        let action = || format!("deleting key {key:?} of the store");
        let name = ffi::c_string(key, "deleting a key of the store")?;
        // c10d's FileStore does not say whether there was a key.
        if !self.check(&[key])? {
            return Ok(false);
        }
        let mut existed = 0;
        // SAFETY: the store lives as long as `self`. `name` outlives the call, and `existed` is local.
        let status = unsafe { ffi::tchd_store_delete(self.as_ptr(), name.as_ptr(), &raw mut existed) };
        ffi::check(status, action)?;
        Ok(existed != 0)
    }

    pub(super) fn compare_set(&self, key: &str, expected: &[u8], desired: &[u8]) -> Result<Vec<u8>> {
        let action = || format!("comparing key {key:?} of the store");
        let name = ffi::c_string(key, "comparing a key of the store")?;
        self.responds(action)?;
        let (mut bytes, mut length) = (ptr::null_mut(), 0);
        // SAFETY: the store lives as long as `self`. The strings outlive the call, and the out pointers are
        // local.
        let status = unsafe {
            ffi::tchd_store_compare_set(
                self.as_ptr(),
                name.as_ptr(),
                expected.as_ptr(),
                expected.len(),
                desired.as_ptr(),
                desired.len(),
                &raw mut bytes,
                &raw mut length,
            )
        };
        ffi::check(status, action)?;
        // SAFETY: the call succeeded, so it has allocated `bytes`, and nothing else refers to them.
        Ok(unsafe { take(bytes, length) })
    }

    pub(super) fn num_keys(&self) -> Result<usize> {
        let action = || "counting the keys of the store".to_owned();
        self.responds(action)?;
        let mut count = 0;
        // SAFETY: the store lives as long as `self`, and `count` is local.
        let status = unsafe { ffi::tchd_store_num_keys(self.as_ptr(), &raw mut count) };
        ffi::check(status, action)?;
        Ok(usize::try_from(count).unwrap_or(0))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the shim allocated it, and this is the only place that frees it. Groups and stores that
        // use the C++ store hold references of their own.
        unsafe { ffi::tchd_store_free(self.raw.as_ptr()) };
    }
}

/// Keys as C++ takes them.
struct Names {
    pointers: Vec<*const c_char>,
    /// To these `pointers` point.
    _owned: Vec<CString>,
}

impl Names {
    fn new(keys: &[&str], what: &str) -> Result<Self> {
        let owned = keys.iter().map(|key| ffi::c_string(key, what)).collect::<Result<Vec<_>>>()?;
        Ok(Self { pointers: owned.iter().map(|name| name.as_ptr()).collect(), _owned: owned })
    }
}

/// Copies bytes that the shim allocated, and frees them.
///
/// # Safety
/// `bytes` is a pointer to `length` bytes that the shim returned, and nothing else refers to them.
unsafe fn take(bytes: *mut u8, length: usize) -> Vec<u8> {
    // SAFETY: the caller vouches for the pointer, which is not null also if there are no bytes.
    let value = unsafe { std::slice::from_raw_parts(bytes, length) }.to_vec();
    // SAFETY: the shim allocated it, and it is not used after this.
    unsafe { ffi::tchd_bytes_free(bytes) };
    value
}

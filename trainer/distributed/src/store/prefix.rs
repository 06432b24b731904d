//! A part of another store.

#![expect(unsafe_code, reason = "calls the shim's store functions")]

use std::ptr;

use super::handle::{Backing, Handle};
use super::interface::Store;
use crate::error::Result;
use crate::ffi;

/// c10d's `PrefixStore`: keeps the keys of one purpose apart from the others. A key `k` here is the key
/// `prefix/k` there.
#[derive(Debug)]
pub struct PrefixStore {
    handle: Handle,
}

impl PrefixStore {
    /// The part of `store` with this prefix. It keeps the C++ store alive, so `store` may be dropped.
    ///
    /// # Errors
    /// If the prefix contains a NUL character.
    pub fn new(prefix: &str, store: &(impl Store + ?Sized)) -> Result<Self> {
        let name = ffi::c_string(prefix, "making a part of the store")?;
        let whole = store.handle();
        let mut raw = ptr::null_mut();
        // SAFETY: `name`, the store and `raw` outlive the call. The new store keeps a reference of its own.
        let status = unsafe { ffi::tchd_store_prefix(name.as_ptr(), whole.as_ptr(), &raw mut raw) };
        ffi::check(status, || format!("making the part {prefix:?} of the store"))?;
        Ok(Self { handle: Handle::own(raw, whole.timeout(), whole.server())? })
    }
}

impl Backing for PrefixStore {
    fn handle(&self) -> &Handle {
        &self.handle
    }
}

//! A store in the memory of one process.

#![expect(unsafe_code, reason = "calls the shim's store functions")]

use std::ptr;
use std::time::Duration;

use super::handle::{Backing, Handle};
use crate::error::Result;
use crate::ffi;

/// c10d's `HashStore`: for groups whose ranks are threads of this process, or a group of one rank. No other
/// process sees it.
#[derive(Debug)]
pub struct HashStore {
    handle: Handle,
}

impl HashStore {
    /// An empty store. [`Store::get`](crate::Store::get) waits for at most `timeout`.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new(timeout: Duration) -> Result<Self> {
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` outlives the call.
        let status = unsafe { ffi::tchd_store_hash(ffi::milliseconds(timeout), &raw mut raw) };
        ffi::check(status, || "making a store in memory".to_owned())?;
        Ok(Self { handle: Handle::own(raw, timeout, None)? })
    }
}

impl Backing for HashStore {
    fn handle(&self) -> &Handle {
        &self.handle
    }
}

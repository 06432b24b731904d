//! A store in a file that all ranks can write.

#![expect(unsafe_code, reason = "calls the shim's store functions")]

use std::ffi::c_int;
use std::path::Path;
use std::ptr;
use std::time::Duration;

use super::handle::{Backing, Handle};
use crate::error::{Error, ErrorKind, Result};
use crate::ffi;

/// c10d's `FileStore`: the ranks of one machine, or of machines that share a file system with file locks.
#[derive(Debug)]
pub struct FileStore {
    handle: Handle,
}

impl FileStore {
    /// Opens the store in the file `path`, which is made when the first key is set.
    /// [`Store::get`](crate::Store::get) waits for at most `timeout`.
    ///
    /// If `users` is a number, that many stores are opened on the file, one by each rank, and the last one
    /// that is dropped removes it. Otherwise the file stays. A file of an earlier run still has that run's
    /// keys, and a group does not start on it, so take a new name or remove it first.
    ///
    /// # Errors
    /// If the folder does not exist, or the path is not text.
    pub fn open(path: &Path, users: Option<usize>, timeout: Duration) -> Result<Self> {
        let action = || format!("opening the store in {}", path.display());
        let refuse = |why: &str| Error::new(ErrorKind::Other, action(), why);
        // c10d would wait for the folder until the timeout.
        let path = std::path::absolute(path)
            .map_err(|error| Error::new(ErrorKind::Other, action(), error.to_string()))?;
        if !path.parent().is_some_and(Path::is_dir) {
            return Err(refuse("its folder does not exist"));
        }
        if path.is_dir() {
            return Err(refuse("it is a folder"));
        }
        let text = path.to_str().ok_or_else(|| refuse("the path is not valid text"))?;
        let name = ffi::c_string(text, "opening a store in a file")?;
        let users =
            c_int::try_from(users.unwrap_or(0)).map_err(|_| refuse("the number of users is too large"))?;
        let mut raw = ptr::null_mut();
        // SAFETY: `name` and `raw` outlive the call.
        let status =
            unsafe { ffi::tchd_store_file(name.as_ptr(), users, ffi::milliseconds(timeout), &raw mut raw) };
        ffi::check(status, action)?;
        Ok(Self { handle: Handle::own(raw, timeout, None)? })
    }
}

impl Backing for FileStore {
    fn handle(&self) -> &Handle {
        &self.handle
    }
}

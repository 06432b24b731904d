//! Ends collectives over NCCL from another thread.

#![expect(unsafe_code, reason = "calls the shim's NCCL functions")]

use std::ptr::{self, NonNull};

use crate::error::{Error, ErrorKind, Result};
use crate::ffi;
use crate::process_group::ProcessGroup;

/// Aborts the collectives of a group over NCCL. Unlike the group, it can leave its thread.
#[derive(Debug)]
pub struct NcclAbort {
    raw: NonNull<ffi::NcclAbort>,
}

// SAFETY: the C++ object holds a reference to the backend, counted atomically, and does nothing but
// abort it, which c10d allows on any thread.
unsafe impl Send for NcclAbort {}

impl ProcessGroup {
    /// A handle with which another thread can abort the collectives of this group over NCCL.
    /// [`Self::abort_handle`] aborts those over gloo too.
    ///
    /// # Errors
    /// If CUDA tensors of this group do not go over NCCL.
    pub fn nccl_abort(&self) -> Result<NcclAbort> {
        let action = || format!("making an abort handle on rank {} of {}", self.rank(), self.world());
        let mut raw = ptr::null_mut();
        // SAFETY: group and `raw` are alive during the call.
        let status = unsafe { ffi::tchd_nccl_abort_new(self.as_ptr(), &raw mut raw) };
        ffi::check(status, action)?;
        NonNull::new(raw)
            .map(|raw| NcclAbort { raw })
            .ok_or_else(|| Error::new(ErrorKind::Other, action(), "libtorch returned no handle"))
    }
}

impl NcclAbort {
    /// Ends the collectives over NCCL that wait. Afterwards the group is unusable. All ranks should
    /// abort, because some versions of NCCL wait for the others when a group is freed in another way.
    ///
    /// # Errors
    /// If NCCL cannot abort.
    pub fn abort(self) -> Result<()> {
        // SAFETY: the handle is alive.
        let status = unsafe { ffi::tchd_nccl_abort(self.raw.as_ptr()) };
        ffi::check(status, || "aborting the collectives over NCCL".to_owned())
    }
}

impl Drop for NcclAbort {
    fn drop(&mut self) {
        // SAFETY: the shim allocated the handle, and this is the only place that frees it.
        unsafe { ffi::tchd_nccl_abort_free(self.raw.as_ptr()) };
    }
}

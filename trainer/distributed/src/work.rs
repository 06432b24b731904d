//! A collective that runs while the program goes on.

#![expect(unsafe_code, reason = "calls the shim's work functions")]

use std::ffi::c_int;
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tch::Tensor;

use crate::error::{Error, ErrorKind, Result};
use crate::ffi;
use crate::roll_call::RollCall;

/// Work of c10d. The tensors that it reads and writes live at least as long.
#[derive(Debug)]
pub(crate) struct RawWork {
    raw: NonNull<ffi::Work>,
    timeout: Duration,
    action: Rc<str>,
    _tensors: Vec<Tensor>,
}

impl RawWork {
    /// Calls a function of the shim that starts work on `tensors`.
    pub(crate) fn start(
        action: &Rc<str>,
        timeout: Duration,
        tensors: Vec<Tensor>,
        start: impl FnOnce(*mut *mut ffi::Work) -> c_int,
    ) -> Result<Self> {
        let mut raw = ptr::null_mut();
        let status = start(&raw mut raw);
        ffi::check(status, || action.to_string())?;
        let raw = NonNull::new(raw)
            .ok_or_else(|| Error::new(ErrorKind::Other, &**action, "libtorch returned no work"))?;
        Ok(Self { raw, timeout, action: Rc::clone(action), _tensors: tensors })
    }

    /// Waits until it has ended. Over NCCL a collective is only waited for until it is queued, and a message
    /// between two ranks until it has ended.
    pub(crate) fn wait(&self) -> Result<()> {
        // SAFETY: the work is alive.
        let status = unsafe { ffi::tchd_work_wait(self.raw.as_ptr(), ffi::milliseconds(self.timeout)) };
        ffi::check(status, || self.action.to_string())
    }

    /// The rank from which a message came.
    pub(crate) fn source(&self) -> Result<usize> {
        let mut rank = 0;
        // SAFETY: the work is alive, and `rank` is local.
        let status = unsafe { ffi::tchd_work_source(self.raw.as_ptr(), &raw mut rank) };
        ffi::check(status, || self.action.to_string())?;
        usize::try_from(rank).map_err(|_| {
            Error::new(ErrorKind::Other, &*self.action, "the sender of the message is not known")
        })
    }

    fn is_completed(&self) -> Result<bool> {
        let mut done = 0;
        // SAFETY: the work is alive, and `done` is local.
        let status = unsafe { ffi::tchd_work_is_completed(self.raw.as_ptr(), &raw mut done) };
        ffi::check(status, || self.action.to_string())?;
        Ok(done != 0)
    }
}

impl Drop for RawWork {
    fn drop(&mut self) {
        // Messages of gloo have no other owner: gloo stops using the tensor of one that is freed, but leaves it
        // incomplete on the connection, so callers wait for messages before they drop them.
        // SAFETY: the shim allocated it, and this is the only place that frees it. The backend holds a reference
        // of its own, and to the tensors, while a collective runs.
        unsafe { ffi::tchd_work_free(self.raw.as_ptr()) };
    }
}

/// A collective that was started and may still be running. Its tensors must not be used before
/// [`Self::wait`] has returned. Dropping it does not end the collective.
#[derive(Debug)]
#[must_use = "the result is there after `wait`"]
pub struct Work {
    raw: RawWork,
    roll: Arc<RollCall>,
}

impl Work {
    pub(crate) fn new(raw: RawWork, roll: Arc<RollCall>) -> Self {
        Self { raw, roll }
    }

    /// Waits until this rank's part is done. Over NCCL, until it is queued: later work on the GPU comes
    /// after it.
    ///
    /// # Errors
    /// If a peer is lost or too slow, as the collective itself.
    pub fn wait(self) -> Result<()> {
        self.raw.wait().map_err(|error| self.roll.explain(error))
    }

    /// Whether it has ended, with or without an error, which [`Self::wait`] returns.
    ///
    /// # Errors
    /// If libtorch cannot tell.
    pub fn is_completed(&self) -> Result<bool> {
        self.raw.is_completed()
    }
}

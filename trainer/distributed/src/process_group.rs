//! A group of ranks. All ranks make the same calls in the same order. Each backend joins a group in a file
//! of its own, such as `gloo.rs`; everything here is the same for all of them. The collectives are in
//! `collectives/`.

#![expect(unsafe_code, reason = "calls the shim's process group functions")]

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::ffi;
use crate::gloo_sockets::GlooSockets;
use crate::roll_call::{Peer, RollCall};

/// This process's membership in a group of ranks. It cannot leave its thread, because collectives
/// must be called in the same order on all ranks.
#[derive(Debug)]
pub struct ProcessGroup {
    raw: NonNull<ffi::Group>,
    rank: usize,
    world: usize,
    timeout: Cell<Duration>,
    check_calls: bool,
    roll: Arc<RollCall>,
    sockets: Arc<GlooSockets>,
}

/// What a backend knows of a group that it joined.
#[derive(Debug)]
pub(crate) struct Membership {
    pub(crate) rank: usize,
    pub(crate) world: usize,
    /// Limits each collective.
    pub(crate) timeout: Duration,
    pub(crate) check_calls: bool,
    pub(crate) roll: Arc<RollCall>,
    pub(crate) sockets: Arc<GlooSockets>,
}

impl ProcessGroup {
    /// Takes ownership of a group that a backend of the shim has allocated.
    pub(crate) fn own(raw: *mut ffi::Group, membership: Membership) -> Option<Self> {
        let Membership { rank, world, timeout, check_calls, roll, sockets } = membership;
        let timeout = Cell::new(timeout);
        Some(Self { raw: NonNull::new(raw)?, rank, world, timeout, check_calls, roll, sockets })
    }

    /// The number of this process, starting at 0.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks.
    #[must_use]
    pub fn world(&self) -> usize {
        self.world
    }

    /// How long a collective may wait for a peer.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout.get()
    }

    /// Changes how long a collective may wait for a peer, from the next one on. It may differ between ranks.
    ///
    /// # Errors
    /// If the backend cannot change it.
    pub fn set_timeout(&self, timeout: Duration) -> Result<()> {
        // SAFETY: the group is alive during the call.
        let status = unsafe { ffi::tchd_group_set_timeout(self.as_ptr(), ffi::milliseconds(timeout)) };
        ffi::check(status, || format!("changing the time-out of rank {} of {}", self.rank, self.world))?;
        self.timeout.set(timeout);
        Ok(())
    }

    /// Asks all other ranks what they are doing, at once, and returns their answers by rank. A rank has a
    /// second to answer. Works while a collective of another rank hangs, and after one of this rank failed.
    #[must_use]
    pub fn roll_call(&self) -> Vec<Peer> {
        self.roll.ask()
    }

    /// Why calls on this group fail, as this rank found out or another one told it: the ranks that are to
    /// blame, and the reason. `None` while nothing failed. It is known before this rank's own call fails.
    #[must_use]
    pub fn failure(&self) -> Option<(Vec<usize>, String)> {
        self.roll.failure()
    }

    /// What a rank knows of other ranks.
    pub(crate) fn roll(&self) -> &Arc<RollCall> {
        &self.roll
    }

    /// The sockets of gloo.
    pub(crate) fn sockets(&self) -> &Arc<GlooSockets> {
        &self.sockets
    }

    /// Whether all ranks compare each call before they make it.
    pub(crate) fn checks_calls(&self) -> bool {
        self.check_calls
    }

    /// The action that an error names.
    pub(crate) fn action(&self, what: &str) -> String {
        format!("{what} on rank {} of {}", self.rank, self.world)
    }

    /// Adds the ranks that an error is due to.
    pub(crate) fn explain(&self, error: Error) -> Error {
        self.roll.explain(error)
    }

    /// The C++ object, for the Reducer and SyncBatchNorm.
    pub(crate) fn as_ptr(&self) -> *mut ffi::Group {
        self.raw.as_ptr()
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // SAFETY: the shim allocated it, and this is the only place that frees it. Reducers and
        // autograd graphs hold references of their own to the C++ group.
        unsafe { ffi::tchd_group_free(self.raw.as_ptr()) };
    }
}

//! Calls that make ranks wait for each other or compare themselves, without moving a tensor.

#![expect(unsafe_code, reason = "calls the shim's process group functions")]

use std::borrow::Borrow;
use std::time::Duration;

use tch::Tensor;

use crate::error::{Error, Result};
use crate::ffi;
use crate::process_group::ProcessGroup;

impl ProcessGroup {
    /// Waits until all ranks have called this, for at most `timeout`, or the group's timeout if it is
    /// `None`.
    ///
    /// # Errors
    /// If a peer is lost or too slow.
    pub fn barrier(&self, timeout: Option<Duration>) -> Result<()> {
        let timeout = timeout.unwrap_or(self.timeout());
        self.call("barrier", "", timeout, |action| {
            // SAFETY: the group is alive during the call.
            let status = unsafe { ffi::tchd_group_barrier(self.as_ptr(), ffi::milliseconds(timeout)) };
            ffi::check(status, || action.to_string())
        })
    }

    /// A barrier that finds all ranks that do not come: rank 0 waits for each, and tells the others. Unlike
    /// [`Self::barrier`] it is not compared with the calls of other ranks first, so a rank that is in
    /// another call is one that did not come.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if a rank does not come in time, and
    /// [`ErrorKind::PeerLost`](crate::ErrorKind::PeerLost) if one is gone. [`Error::ranks`] are those ranks.
    pub fn monitored_barrier(&self, timeout: Duration) -> Result<()> {
        self.roll().begin("monitored barrier".to_owned());
        // SAFETY: the group is alive during the call.
        let status = unsafe { ffi::tchd_group_monitored_barrier(self.as_ptr(), ffi::milliseconds(timeout)) };
        let result = ffi::check(status, || self.action("monitored barrier"));
        let result = result.map_err(|error| {
            // "[Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 2000 ms"
            let missing = ranks_in(error.message());
            let error = self.explain(error.into_failure_of_peer());
            if error.ranks().is_empty() && !missing.is_empty() {
                return self.blame_missing(error, missing);
            }
            error
        });
        self.roll().end();
        result
    }

    fn blame_missing(&self, error: Error, missing: Vec<usize>) -> Error {
        let list: Vec<String> = missing.iter().map(usize::to_string).collect();
        let text = format!("rank {} did not come to the barrier", list.join(" and rank "));
        self.roll().blame_ranks(missing.clone(), text.clone());
        error.due_to(missing, &text, false)
    }

    /// Checks that the tensors have the same shapes on all ranks, which the Reducer relies on.
    ///
    /// # Errors
    /// If the shapes differ, or a peer is lost or too slow.
    pub fn verify_shapes<T: Borrow<Tensor>>(&self, tensors: &[T]) -> Result<()> {
        let pointers = ffi::pointers(tensors);
        self.call("comparing shapes", "", self.timeout(), |action| {
            // SAFETY: group and tensors are alive during the call.
            let status =
                unsafe { ffi::tchd_group_verify_shapes(self.as_ptr(), pointers.as_ptr(), pointers.len()) };
            ffi::check(status, || action.to_string())
        })
    }
}

/// The ranks that c10d's message names.
fn ranks_in(message: &str) -> Vec<usize> {
    let Some((_, rest)) = message.split_once("Ranks ") else { return Vec::new() };
    let Some((list, _)) = rest.split_once(" failed to pass") else { return Vec::new() };
    list.split(',').filter_map(|rank| rank.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_read_from_the_message() {
        assert_eq!(ranks_in("[Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 2000 ms"), [1, 3]);
        assert_eq!(ranks_in("Timed out waiting 2000ms"), [0; 0]);
    }
}

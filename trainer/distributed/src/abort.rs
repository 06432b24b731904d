//! Ends the collectives of a group from another thread.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::gloo_sockets::GlooSockets;
use crate::nccl_abort::NcclAbort;
use crate::process_group::ProcessGroup;
use crate::roll_call::RollCall;

/// Aborts the collectives of a group, on any thread. The group's other ranks fail too.
#[derive(Debug)]
pub struct GroupAbort {
    sockets: Arc<GlooSockets>,
    roll: Arc<RollCall>,
    nccl: Option<NcclAbort>,
    rank: usize,
}

const _: () = {
    const fn may_leave_its_thread<T: Send>() {}
    may_leave_its_thread::<GroupAbort>();
};

impl ProcessGroup {
    /// A handle with which another thread can abort the collectives of this group, those over gloo and those
    /// over NCCL. It is of use only while the group is alive.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn abort_handle(&self) -> Result<GroupAbort> {
        Ok(GroupAbort {
            sockets: Arc::clone(self.sockets()),
            roll: Arc::clone(self.roll()),
            nccl: self.uses_nccl().then(|| self.nccl_abort()).transpose()?,
            rank: self.rank(),
        })
    }
}

impl GroupAbort {
    /// Ends the collectives that wait, on this rank and, because its connections end, on all others. They
    /// return errors that say who aborted. Afterwards the group is unusable.
    ///
    /// # Errors
    /// If the connections cannot be found, which is so on systems other than Linux, or NCCL cannot abort.
    pub fn abort(self) -> Result<()> {
        let Self { sockets, roll, nccl, rank } = self;
        roll.blame_ranks(vec![rank], format!("rank {rank} aborted the group"));
        let ended = sockets.shut_down();
        nccl.map(NcclAbort::abort).transpose()?;
        if ended == 0 && roll.has_peers() {
            let message = "the connections of gloo were not found";
            return Err(Error::new(ErrorKind::Other, "aborting the group", message));
        }
        Ok(())
    }
}

//! What another rank is doing.

use std::fmt::{self, Display};
use std::time::Duration;

/// Another rank of a group, and what it answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its number.
    pub rank: usize,
    /// What it is doing.
    pub state: PeerState,
}

/// What another rank is doing. `number` counts the calls of a rank on its group, starting at 1. Ranks that
/// are in the same call have the same number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// Its process has ended, or it has dropped its group.
    Gone,
    /// It does not answer: its process is stopped, or its machine cannot be reached.
    Silent,
    /// It is in a call.
    Calling {
        /// Number of the call.
        number: u64,
        /// The call, with the shapes of its tensors.
        call: String,
        /// For how long.
        since: Duration,
    },
    /// It is between two calls.
    Elsewhere {
        /// Number of the last call, 0 if there was none.
        number: u64,
        /// The last call, with the shapes of its tensors.
        last: String,
        /// For how long.
        since: Duration,
    },
}

impl Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = self.rank;
        match &self.state {
            PeerState::Gone => write!(f, "rank {rank} has ended or left the group"),
            PeerState::Silent => {
                write!(f, "rank {rank} does not answer: its process is stopped, or its machine unreachable")
            }
            PeerState::Calling { number, call, since } => {
                write!(f, "rank {rank} has been in call {number} for {:.1} s: {call}", since.as_secs_f64())
            }
            PeerState::Elsewhere { number: 0, since, .. } => {
                write!(f, "rank {rank} has made no call for {:.1} s since it joined", since.as_secs_f64())
            }
            PeerState::Elsewhere { number, last, since } => {
                let seconds = since.as_secs_f64();
                write!(f, "rank {rank} has made no call for {seconds:.1} s since call {number}: {last}")
            }
        }
    }
}

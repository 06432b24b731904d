//! How a run ended.

use std::path::PathBuf;

use crate::input::End;
use crate::rank::Reported;

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Everything was done.
    Finished,
    /// The user interrupted the run.
    Interrupted {
        /// The checkpoint that the ranks named.
        resume_from: Option<PathBuf>,
        /// Whether ranks had to be killed, so that the checkpoint may be older than the interrupt.
        killed: bool,
    },
    /// A rank failed.
    Failed(Failure),
    /// The ranks did not end within the time limit. These had not.
    TimedOut(Vec<usize>),
    /// All ranks exited with success, but none reported that the run finished.
    Unfinished,
}

/// The rank that failed first, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Its number.
    pub rank: usize,
    /// Why.
    pub cause: Cause,
}

/// Why a rank failed.
#[derive(Debug, Clone, PartialEq)]
pub enum Cause {
    /// It said so itself.
    Reported(Reported),
    /// Its process ended without a word.
    Ended(End),
    /// It sent no heartbeat for this many seconds, while its process was in this state.
    Silent {
        /// How long.
        seconds: u64,
        /// As in [`Input::State`](crate::Input::State).
        state: char,
    },
    /// It did not end when it was asked to, and was killed.
    Hung,
    /// It ended with success before the run was finished, so the others lost it.
    LeftEarly,
    /// It is of another version: what shows that.
    OtherVersion(String),
    /// The connection to its machine was lost.
    MachineLost {
        /// The number of the machine.
        machine: usize,
        /// Seconds of silence; `None` if the connection was closed.
        silent: Option<u64>,
    },
}

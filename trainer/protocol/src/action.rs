//! What a supervisor wants done.

use serde::{Deserialize, Serialize};

use crate::verdict::Failure;

/// Something to do now.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send a signal to the process of a rank.
    Signal(usize, StopSignal),
    /// Look at the process of a rank, and answer with [`Input::State`](crate::Input::State).
    Observe(usize),
    /// Stop this process as Ctrl-Z does, and tell it with [`Input::Continue`](crate::Input::Continue)
    /// when it continues.
    SuspendSelf,
    /// Start all ranks again from the last checkpoint, and answer with
    /// [`Input::Restarted`](crate::Input::Restarted), or with
    /// [`Input::NotRestarted`](crate::Input::NotRestarted) if there is none.
    Restart {
        /// Why: how the ranks failed.
        failure: Failure,
        /// The number of this restart, from 1.
        restart: u32,
    },
    /// Close the connection to this machine, if it is open: the machine was given up, and must notice.
    Disconnect(usize),
    /// Tell the user.
    Notice(Notice),
}

/// A signal to a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopSignal {
    /// Save and end.
    Terminate,
    /// End at once.
    Kill,
    /// Stop for a while.
    Suspend,
    /// Continue after [`Self::Suspend`].
    Continue,
}

/// Something that the user should know while the run continues.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// These ranks make no progress. The others, if any, wait for them.
    Stalled {
        /// The ranks that may be the reason.
        ranks: Vec<usize>,
        /// For how long, in seconds.
        seconds: f64,
        /// The mean time of a step before, in seconds.
        step: f64,
    },
    /// The ranks make progress again.
    Recovered {
        /// How long they made none, in seconds.
        seconds: f64,
    },
    /// A rank ended badly after everything was done, which changes nothing.
    FailedAfterwards(Failure),
    /// The processes of these ranks are still there: no signal ends them.
    LeftBehind(Vec<usize>),
}

//! Why a run on several machines did not start, or why this machine left it.

use std::borrow::Cow;

use yolo_base::Hint;
use yolo_protocol::meeting::MeetingError;

/// The error of a run on several machines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MachinesError {
    /// Options do not fit together.
    #[error("{what}")]
    Options {
        /// Which, and why.
        what: String,
        /// What to do.
        hint: String,
    },
    /// The master cannot listen.
    #[error("cannot listen on {address}: {why}")]
    Listen {
        /// As the options name it.
        address: String,
        /// Why.
        why: String,
        /// What to do.
        hint: String,
    },
    /// The machines did not meet.
    #[error(transparent)]
    Meeting(#[from] MeetingError),
    /// The connection to the master was lost during the run.
    #[error("{0}")]
    MasterLost(String),
}

impl Hint for MachinesError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Options { hint, .. } | Self::Listen { hint, .. } => Some(hint.into()),
            Self::Meeting(error) => error.hint(),
            Self::MasterLost(_) => {
                Some("the output of `yolo` on machine 0 says more, if it still runs".into())
            }
        }
    }
}

//! Why a run on several machines did not start, or why this machine left it.

use std::borrow::Cow;

use yolo_base::Hint;
use yolo_base::env::YOLO_JOIN_SECONDS;

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
    /// Machines did not come in time.
    #[error("waited {seconds} s, and {missing}")]
    Missing {
        /// How long.
        seconds: u64,
        /// Who is missing.
        missing: String,
    },
    /// The master could not be reached.
    #[error("cannot reach machine 0 at {address}: {why}")]
    Unreachable {
        /// As the options name it.
        address: String,
        /// Why.
        why: String,
    },
    /// A machine refused the run, or the master did.
    #[error("{message}")]
    Refused {
        /// Why.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// The connection was lost before the run began.
    #[error("{0}")]
    Left(String),
    /// The connection to the master was lost during the run.
    #[error("{0}")]
    MasterLost(String),
}

impl Hint for MachinesError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Options { hint, .. } | Self::Listen { hint, .. } => Some(hint.into()),
            Self::Missing { .. } => Some(
                format!("start the same command there, each with its number in --node-rank; {YOLO_JOIN_SECONDS} changes the limit")
                    .into(),
            ),
            Self::Unreachable { .. } => Some(
                "start machine 0, and check that --master-addr and --master-port are the same everywhere and that no \
                 firewall blocks the port"
                    .into(),
            ),
            Self::Refused { hint, .. } => hint.as_deref().map(Into::into),
            Self::Left(_) => None,
            Self::MasterLost(_) => Some("the output of `yolo` on machine 0 says more, if it still runs".into()),
        }
    }
}

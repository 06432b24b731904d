//! What machines say to each other before a run starts, one JSON line per message.

use serde::{Deserialize, Serialize};
use yolo_plan::backend::Backend;
use yolo_plan::run::TrainTask;

use super::facts::Fact;

/// The version of the messages between machines, of this file and of `yolo-protocol`.
pub(super) const PROTOCOL: u32 = 2;
/// No message is longer than this: a plan with a large model and thousands of class names fits.
pub(super) const LONGEST: u64 = 16 << 20;

/// The first message of a member. Invariant: its field `yolo` stays where it is in all versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Hello {
    /// [`PROTOCOL`].
    pub(super) yolo: u32,
    /// The version of the program.
    pub(super) program: String,
    pub(super) machine: usize,
    pub(super) machines: usize,
    pub(super) host: String,
    /// The number of its ranks.
    pub(super) ranks: usize,
    /// What must be equal on all machines, without the data set of a resumed run.
    pub(super) facts: Vec<Fact>,
}

/// From the master to a machine that waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub(super) enum ToWaiting {
    Beat,
    /// These machines are missing.
    Waiting {
        missing: Vec<usize>,
    },
    /// There will be no run.
    Refused {
        message: String,
        hint: Option<String>,
    },
    /// All are there and agree: the ranks of this machine.
    Layout {
        first: usize,
        world_size: usize,
        /// The run that is resumed, as the master has planned it.
        resumed: Option<Box<TrainTask>>,
    },
}

/// From a machine that got its layout to the master.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub(super) enum FromWaiting {
    Beat,
    /// It can start, with this backend. In a resumed run, only now does it know its data set.
    Ready {
        backend: Option<Backend>,
        data: Vec<Fact>,
    },
    /// It cannot.
    Failed {
        message: String,
        hint: Option<String>,
    },
}

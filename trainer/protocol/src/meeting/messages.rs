//! What machines say to each other before a run starts, one JSON line per message.

use serde::{Deserialize, Serialize};
use yolo_plan::backend::Backend;
use yolo_plan::run::TrainTask;

use super::fact::Fact;

/// The version of all messages between machines, those of the run included.
pub const MESSAGES: u32 = 2;

/// The first message of a machine that joins. Invariant: its field `yolo` stays where it is in all versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// [`MESSAGES`].
    pub yolo: u32,
    /// The version of the program.
    pub program: String,
    /// The number of the machine, from 1.
    pub machine: usize,
    /// How many machines the run has, as this one was told.
    pub machines: usize,
    /// Its name.
    pub host: String,
    /// The number of its ranks.
    pub ranks: usize,
    /// What must be equal on all machines, without the data set of a resumed run.
    pub facts: Vec<Fact>,
}

/// From the master to a machine that waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub enum ToWaiting {
    /// The master is there. Sent every second.
    Beat,
    /// The run has not all its machines.
    Waiting {
        /// The machines that are missing; empty as the answer to [`Hello`].
        missing: Vec<usize>,
    },
    /// There will be no run.
    Refused {
        /// Why.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// All are there and agree: the ranks of this machine.
    Layout {
        /// The number of its first rank.
        first: usize,
        /// Ranks on all machines.
        world_size: usize,
        /// The run that is resumed, as the master has planned it.
        resumed: Option<Box<TrainTask>>,
    },
}

/// From a machine that got its layout to the master.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub enum FromWaiting {
    /// The machine is there. Sent every second.
    Beat,
    /// It can start. In a resumed run, only now does it know its data set.
    Ready {
        /// How its ranks would communicate.
        backend: Option<Backend>,
        /// About the data set of a resumed run.
        data: Vec<Fact>,
    },
    /// It cannot start.
    Failed {
        /// Why.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
}

//! What the supervisor of a run and the agents on the other machines say to each other, one JSON line per
//! message. Ranks have their numbers among all ranks of the run.

use serde::{Deserialize, Serialize};
use yolo_plan::event::Event;

use crate::action::StopSignal;
use crate::input::{End, Signal};

/// From the master to another machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub enum ToMember {
    /// The master is there. Sent every second.
    Beat,
    /// Start the ranks of this plan. The number counts the starts of the run, from 0.
    Start {
        /// The number of this start.
        start: u32,
        /// The plan of that machine, as JSON. The agent passes it on as it is.
        plan: String,
        /// Where the ranks meet: address and port of the store.
        store: String,
    },
    /// Send a signal to a rank.
    Signal {
        /// The rank.
        rank: usize,
        /// The signal.
        signal: StopSignal,
    },
    /// Answer with the state of the process of a rank.
    Observe {
        /// The rank.
        rank: usize,
    },
    /// The run is over.
    Over {
        /// The exit status of the master's command.
        status: u8,
        /// How the run ended.
        how: String,
    },
}

/// From another machine to the master. `start` is the number of the start to which a rank belongs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the fields are those of the inputs of the same names")]
pub enum ToMaster {
    /// The machine is there. Sent every second.
    Beat,
    /// Its ranks cannot be started.
    NotStarted { start: u32, message: String, hint: Option<String> },
    /// A rank sent an event.
    Event { start: u32, rank: usize, event: Event },
    /// A rank sent a line that is no event.
    Garbled { start: u32, rank: usize, line: String },
    /// The process of a rank ended.
    Ended { start: u32, rank: usize, end: End },
    /// The answer to [`ToMember::Observe`].
    State { start: u32, rank: usize, state: Option<char> },
    /// The user asked on that machine to end the run.
    Signal { signal: Signal },
}

//! How the machines of a run meet before it starts: the master [gathers](Gathering) them, compares what must be
//! equal and [prepares](Preparing) the start; each other machine [joins](Joining) it. Strangers at the master's
//! port, wrong numbers and other versions are refused without harm to the run.

mod error;
mod fact;
mod gathering;
mod joining;
mod messages;
mod names;
mod preparing;

pub use error::MeetingError;
pub use fact::{Difference, Fact, HYPERPARAMETER, NCCL, first_difference};
pub use gathering::{Arrival, GatherAction, GatherInput, GatherNotice, Gathered, Gathering, Master};
pub use joining::{JoinAction, JoinInput, JoinNotice, Joined, Joining, Layout};
pub use messages::{FromWaiting, Hello, MESSAGES, ToWaiting};
pub use names::{missing_in_words, named};
pub use preparing::{PrepareInput, Preparing};

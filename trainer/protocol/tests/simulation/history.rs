//! What happened in a simulated run, as nobody in the simulated world knows it.

use std::time::Duration;

use yolo_protocol::{MemberVerdict, Notice, Signal, Verdict};

use crate::schedule::Fault;

#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) log: Vec<String>,
    /// The faults that made a rank fail by itself, in order: when, which rank, and whether it died.
    pub(crate) causes: Vec<(Duration, usize, Fault)>,
    /// When the user's signals reached the supervisor.
    pub(crate) signals: Vec<(Duration, Signal)>,
    pub(crate) notices: Vec<(Duration, Notice)>,
    pub(crate) supervisor_killed: Option<Duration>,
    /// When the last rank ended.
    pub(crate) last_end: Option<Duration>,
    pub(crate) verdict: Option<(Duration, Verdict)>,
    /// How the run ended for the agents, by machine.
    pub(crate) members: Vec<(usize, Duration, MemberVerdict)>,
    /// When a user pressed Ctrl-C on a machine that is not the master.
    pub(crate) asked_elsewhere: Option<Duration>,
    /// Agents that were killed, and when.
    pub(crate) agents_killed: Vec<(usize, Duration)>,
    /// When the last rank ended on a machine that is not the master.
    pub(crate) last_end_elsewhere: Option<Duration>,
    /// Ranks that were running at the end, and whether a signal could have ended them.
    pub(crate) left: Vec<(usize, bool)>,
    /// When rank 0 had everything done.
    pub(crate) finished: Option<Duration>,
    /// When a rank of the run last died, of those that died by a fault.
    pub(crate) deaths: Vec<Duration>,
    pub(crate) restarts: u32,
    /// The first rank whose main thread hung while all ranks trained, after their first steps.
    pub(crate) hung_in_training: Option<(Duration, usize)>,
    /// Whether a rank ran while the supervisor was suspended.
    pub(crate) ran_while_suspended: bool,
    /// Whether the user had to end a run that did not end by itself.
    pub(crate) impatient: bool,
}

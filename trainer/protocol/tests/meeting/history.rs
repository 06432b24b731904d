//! What happened in a simulated meeting, as nobody in the simulated world knows it.

use std::time::Duration;

use yolo_protocol::meeting::{Layout, MeetingError};

/// How a program ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum End {
    /// Its ranks are started.
    Started,
    /// With this error.
    Failed(MeetingError),
    /// It was killed, or its user ended it.
    Killed,
    /// It reported that it cannot start.
    CouldNotStart,
}

#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) log: Vec<String>,
    pub(crate) master: Option<(Duration, End)>,
    /// When the master had all machines.
    pub(crate) complete: Option<Duration>,
    /// How each program ended, in the order of the schedule.
    pub(crate) programs: Vec<Option<(Duration, End)>>,
    /// Which programs the master let in, and when; those that left again are not here.
    pub(crate) joined: Vec<(usize, Duration)>,
    /// The parts of the programs.
    pub(crate) layouts: Vec<Option<Layout>>,
}

//! What a supervisor knows about one rank.

use std::time::Duration;

use yolo_base::exit;
use yolo_plan::event::Progress;

use crate::input::End;

/// Number of the signal with which a rank is asked to end.
const SIGTERM: i32 = 15;

/// One rank, as its supervisor sees it.
#[derive(Debug, Clone, Default)]
pub struct Rank {
    pub(crate) doing: String,
    pub(crate) device: String,
    /// Whether it has said hello as a rank of this version.
    pub(crate) greeted: bool,
    pub(crate) progress: Option<Progress>,
    /// When it last sent an event.
    pub(crate) heard: Duration,
    /// When it last began something else, or did a step.
    pub(crate) moved: Duration,
    /// Whether what it is doing is counted in steps.
    pub(crate) counts_steps: bool,
    pub(crate) failed: Option<(Duration, Reported)>,
    /// When it was given up for its silence: seconds, state of the process.
    pub(crate) silent: Option<(Duration, u64, char)>,
    pub(crate) other_version: Option<(Duration, String)>,
    pub(crate) ended: Option<(Duration, End)>,
    /// Whether the connection to its machine was lost while it ran.
    pub(crate) lost: Option<Lost>,
    /// When the supervisor began to end it because of a failure.
    pub(crate) torn_down: Option<Duration>,
    /// Whether the user asked it to end.
    pub(crate) asked: bool,
    /// Whether the supervisor killed it.
    pub(crate) killed: bool,
    /// Whether it was killed because the user did not want to wait, so that it is not known to hang.
    pub(crate) killed_by_user: bool,
}

/// How a rank was lost with its machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lost {
    /// When its machine was last heard.
    pub(crate) at: Duration,
    pub(crate) machine: usize,
    /// Seconds of silence; `None` if the connection was closed.
    pub(crate) silent: Option<u64>,
}

/// A failure that a rank reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// What happened.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
    /// What the rank was doing: completes "it was …".
    pub doing: String,
    /// Whether it only noticed that another rank is gone.
    pub peer_lost: bool,
    /// Whether a file of the data set is the cause.
    pub of_data: bool,
}

impl Rank {
    pub(crate) fn new() -> Self {
        Self { doing: "starting".to_owned(), ..Self::default() }
    }

    /// What it is doing: completes "it was …".
    pub fn doing(&self) -> &str {
        &self.doing
    }

    /// Its device, as it named it; empty before it did.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// How far it is, once it trains.
    pub fn progress(&self) -> Option<&Progress> {
        self.progress.as_ref()
    }

    /// Whether what it is doing is counted in steps, so that [`Self::progress`] is about it.
    pub fn counts_steps(&self) -> bool {
        self.counts_steps
    }

    /// Whether its process has ended, or cannot be reached any more.
    pub fn has_ended(&self) -> bool {
        self.ended.is_some() || self.lost.is_some()
    }

    /// Whether it ended as a rank does that was asked to: with its state saved, or by SIGTERM.
    pub(crate) fn ended_as_asked(&self) -> bool {
        let status = i32::from(exit::INTERRUPTED);
        matches!(self.ended, Some((_, End::Exited(code))) if code == status || code == 0)
            || matches!(self.ended, Some((_, End::Signalled(SIGTERM))))
    }

    /// Whether it is further than `other`, so that it waits for it.
    pub(crate) fn is_ahead_of(&self, other: &Self) -> bool {
        use yolo_plan::event::Stage::Exchanging;
        let (Some(own), Some(other)) = (&self.progress, &other.progress) else { return false };
        own.steps > other.steps
            || (own.steps == other.steps && own.stage == Exchanging && other.stage != Exchanging)
    }
}

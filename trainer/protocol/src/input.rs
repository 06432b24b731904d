//! What happens to a supervisor.

use serde::{Deserialize, Serialize};
use yolo_plan::event::Event;

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A rank sent an event.
    Event(usize, Event),
    /// A rank sent a line that is no event: it is of another version.
    Garbled(usize, String),
    /// The process of a rank ended. Its events of before have all arrived.
    Ended(usize, End),
    /// This process, or the one on another machine, received a signal that asks it to end.
    Signal(Signal),
    /// This process was asked to stop for a while, by Ctrl-Z.
    Suspend,
    /// This process continues after [`Action::SuspendSelf`](crate::Action::SuspendSelf).
    Continue,
    /// The answer to [`Action::Observe`](crate::Action::Observe): the state of the process as the kernel
    /// reports it (R, S, D, T, t or Z); `None` if that is unknown.
    State(usize, Option<char>),
    /// The answer to [`Action::Restart`](crate::Action::Restart): all ranks were started again.
    Restarted,
    /// The other answer to [`Action::Restart`](crate::Action::Restart).
    NotRestarted,
    /// This machine sent something.
    Heard(usize),
    /// The connection to this machine was closed.
    Closed(usize),
    /// Time passed.
    Tick,
}

/// A signal that asks a supervisor to end the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signal {
    /// SIGINT: a person pressed Ctrl-C.
    Interrupt,
    /// SIGTERM: a program asks.
    Terminate,
    /// SIGHUP: the terminal is gone.
    HangUp,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
}

impl End {
    /// Whether the process reports success.
    pub fn is_success(self) -> bool {
        self == Self::Exited(0)
    }
}

//! What arrives at the supervisor, or at the agent of a machine that is not the master: from the threads that
//! read the events of ranks and the lines of other machines, and from signals.

use yolo_plan::event::Event;
use yolo_protocol::{Signal, ToMaster, ToMember};

/// What arrives at the supervisor, in order. The first number counts the starts of the ranks: what ranks of
/// an earlier start sent is not of interest.
pub(super) enum Message {
    Event(u32, usize, Event),
    /// A line that is not an event: the trainer has another version.
    Garbled(u32, usize, String),
    /// The process has ended and waits to be reaped.
    Ended(u32, usize),
    /// What NCCL says about ranks that are behind.
    Nccl(u32, String),
    /// This process received a signal that asks it to end.
    Signal(Signal),
    /// This process was asked to stop for a while.
    Suspend,
    /// Another machine sent a message.
    FromMachine(usize, ToMaster),
    /// The connection to another machine was closed.
    MachineClosed(usize),
    /// The master sent a message.
    FromMaster(ToMember),
    /// The master refuses the run: why, and what to do.
    Refused(String, Option<String>),
    /// The connection to the master was closed.
    MasterClosed,
}

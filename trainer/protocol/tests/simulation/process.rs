//! The process of a simulated rank.

use std::time::Duration;

use yolo_plan::event::Progress;
use yolo_protocol::{End, RankLife};

use crate::program::Op;

/// A process.
pub(crate) struct Process {
    /// Whether it was started. A machine may be lost before it starts its ranks.
    pub(crate) started: bool,
    pub(crate) life: RankLife,
    /// Which start of the run it belongs to.
    pub(crate) number: u64,
    pub(crate) ops: std::vec::IntoIter<Op>,
    pub(crate) waiting: bool,
    /// Collectives that it has completed.
    pub(crate) completed: usize,
    pub(crate) token: u64,
    pub(crate) hung: bool,
    pub(crate) unkillable: bool,
    pub(crate) stopped: bool,
    pub(crate) held: bool,
    pub(crate) pending_term: bool,
    pub(crate) in_long_work: bool,
    /// Whether its phase is counted in steps.
    pub(crate) trains: bool,
    pub(crate) ended: Option<End>,
    pub(crate) progress: Option<Progress>,
    /// No event reaches the supervisor before the one sent earlier.
    pub(crate) delivered: Duration,
}

impl Process {
    /// A process of this start that is not there yet.
    pub(crate) fn new(number: u64, now: Duration) -> Self {
        Self {
            started: false,
            life: RankLife::new(Duration::from_secs(1)),
            number,
            ops: Vec::new().into_iter(),
            waiting: false,
            completed: 0,
            token: 0,
            hung: false,
            unkillable: false,
            stopped: false,
            held: false,
            pending_term: false,
            in_long_work: false,
            trains: false,
            ended: None,
            progress: None,
            delivered: now,
        }
    }

    /// Whether it is there.
    pub(crate) fn runs(&self) -> bool {
        self.started && self.ended.is_none()
    }

    /// Its state as the kernel reports it.
    pub(crate) fn state(&self) -> char {
        match self.ended {
            Some(_) => 'Z',
            None if self.unkillable => 'D',
            None if self.stopped => 'T',
            None => 'S',
        }
    }
}

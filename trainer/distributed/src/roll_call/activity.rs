//! What this rank is doing, as its thread of collectives writes it and other threads read it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Why calls of this rank fail, as the first rank that noticed found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cause {
    /// The ranks that are to blame.
    pub(super) ranks: Vec<usize>,
    /// The whole reason.
    pub(super) text: String,
    /// Whether a rank is lost, rather than slow.
    pub(super) lost: bool,
}

/// The call of a rank at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Number of the current or last call, 0 before the first.
    pub(super) number: u64,
    /// The current or last call.
    pub(super) call: String,
    /// Whether it is running.
    pub(super) running: bool,
    /// Since it began or ended.
    pub(super) since: Duration,
}

#[derive(Debug)]
struct Current {
    number: u64,
    call: String,
    running: bool,
    since: Instant,
    cause: Option<Cause>,
}

/// The activity of this rank.
#[derive(Debug)]
pub(super) struct Activity {
    current: Mutex<Current>,
}

impl Activity {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        let current = Current { number: 0, call: String::new(), running: false, since: now, cause: None };
        Self { current: Mutex::new(current) }
    }

    /// A call begins; one that is still running is taken to be over.
    pub(super) fn begin(&self, call: String) {
        let mut current = self.lock();
        current.number += 1;
        current.call = call;
        current.running = true;
        current.since = Instant::now();
    }

    /// The call is over.
    pub(super) fn end(&self) {
        let mut current = self.lock();
        current.running = false;
        current.since = Instant::now();
    }

    pub(super) fn now(&self) -> Moment {
        let current = self.lock();
        let since = current.since.elapsed();
        Moment { number: current.number, call: current.call.clone(), running: current.running, since }
    }

    /// Keeps the first cause.
    pub(super) fn blame(&self, cause: Cause) {
        self.lock().cause.get_or_insert(cause);
    }

    pub(super) fn cause(&self) -> Option<Cause> {
        self.lock().cause.clone()
    }

    /// The state is valid after each statement, so a panic elsewhere does not matter.
    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_and_the_first_cause_stays() {
        let activity = Activity::new();
        assert_eq!(activity.now().number, 0);
        activity.begin("barrier".to_owned());
        assert!(activity.now().running);
        activity.end();
        activity.begin("all-reduce".to_owned());
        let now = activity.now();
        assert_eq!((now.number, now.call.as_str(), now.running), (2, "all-reduce", true));
        let cause = |rank| Cause { ranks: vec![rank], text: "gone".to_owned(), lost: true };
        activity.blame(cause(2));
        activity.blame(cause(3));
        assert_eq!(activity.cause(), Some(cause(2)));
    }
}

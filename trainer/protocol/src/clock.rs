//! The time that a supervisor has observed. If the process itself was stopped or the machine was
//! suspended, the ranks may have been too, and their messages of that time are still unread. So a long
//! time that passed without a look counts as a moment.

use std::time::Duration;

/// The longest time between two inputs, see [`Supervisor::wake_in`](crate::Supervisor::wake_in).
pub const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// What a longer time without a look counts. It is less than any time that a supervisor waits for.
const MOMENT: Duration = Duration::from_millis(100);

/// A clock that runs only while somebody looks at it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clock {
    last: Option<Duration>,
    observed: Duration,
}

impl Clock {
    /// Looks at the clock of the world, which never goes back. Returns the time observed so far.
    pub(crate) fn look(&mut self, now: Duration) -> Duration {
        let passed = self.last.map_or(Duration::ZERO, |last| now.saturating_sub(last));
        self.last = Some(now);
        self.observed += if passed > LONGEST_WAIT * 2 { MOMENT } else { passed };
        self.observed
    }

    /// The time observed so far.
    pub(crate) fn now(&self) -> Duration {
        self.observed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_time_without_a_look_counts_as_a_moment() {
        let mut clock = Clock::default();
        let seconds = Duration::from_secs;
        assert_eq!(clock.look(seconds(100)), Duration::ZERO, "the first look starts the clock");
        assert_eq!(clock.look(seconds(101)), seconds(1));
        assert_eq!(clock.look(seconds(3601)), seconds(1) + MOMENT, "the machine was suspended");
        assert_eq!(clock.now(), seconds(1) + MOMENT);
    }
}

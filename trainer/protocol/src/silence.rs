//! Ranks that exist but send no heartbeat: stopped by a signal, or frozen. Heartbeats come from a separate
//! thread, however long a step takes, so silence never means that a step is slow. A stopped rank is given
//! up after a limit; one that gets no CPU time (the machine swaps) after five times as long; one that a
//! debugger holds, never.

use std::time::Duration;

/// A rank that runs or waits gets this many times the time of a stopped one.
const PATIENCE: u32 = 5;

/// Measures the silence of every rank.
#[derive(Debug, Clone)]
pub(crate) struct Silence {
    limit: Duration,
    /// When each rank was last heard; `None` until its first event, since a process may take long to
    /// load its libraries.
    heard: Vec<Option<Duration>>,
    /// When the silent ranks were last looked at.
    looked: Duration,
}

impl Silence {
    pub(crate) fn new(ranks: usize, limit: Duration) -> Self {
        Self { limit, heard: vec![None; ranks], looked: Duration::ZERO }
    }

    /// A rank has sent an event.
    pub(crate) fn heard(&mut self, rank: usize, now: Duration) {
        self.heard[rank] = Some(now);
    }

    /// Nothing could be heard until now.
    pub(crate) fn restart(&mut self, now: Duration) {
        self.heard.iter_mut().flatten().for_each(|heard| *heard = now);
    }

    /// The ranks whose processes should be looked at, at most once a tenth of the limit.
    pub(crate) fn suspects(&mut self, now: Duration) -> Vec<usize> {
        if now < self.looked + self.limit / 10 {
            return Vec::new();
        }
        let silent = |heard: &Option<Duration>| heard.is_some_and(|heard| now >= heard + self.limit);
        let suspects: Vec<usize> = (0..self.heard.len()).filter(|&rank| silent(&self.heard[rank])).collect();
        if !suspects.is_empty() {
            self.looked = now;
        }
        suspects
    }

    /// For how many seconds a rank has been silent, if that means, with its process in this state, that
    /// it will not continue.
    pub(crate) fn gives_up(&self, rank: usize, state: char, now: Duration) -> Option<u64> {
        let silent = now.saturating_sub(self.heard[rank]?);
        let patience = match state {
            't' | 'Z' => return None,
            'T' => 1,
            _ => PATIENCE,
        };
        (silent >= self.limit * patience).then_some(silent.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn a_stopped_rank_has_less_time_than_one_without_cpu_time() {
        let mut silence = Silence::new(2, LIMIT);
        silence.heard(1, Duration::ZERO);
        assert!(silence.suspects(LIMIT - Duration::from_secs(1)).is_empty());
        assert_eq!(silence.suspects(LIMIT), [1], "rank 0 is still loading its libraries");
        assert!(silence.suspects(LIMIT).is_empty(), "it was looked at just now");
        assert_eq!(silence.gives_up(1, 'T', LIMIT), Some(60));
        assert_eq!(silence.gives_up(1, 'R', LIMIT), None);
        assert_eq!(silence.gives_up(1, 'R', LIMIT * 5), Some(300));
        assert_eq!(silence.gives_up(1, 't', LIMIT * 50), None, "a debugger holds it");
        silence.restart(LIMIT * 5);
        assert_eq!(silence.gives_up(1, 'T', LIMIT * 5), None);
    }
}

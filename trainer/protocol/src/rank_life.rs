//! The life of a rank apart from its work: heartbeats, the request to stop, and the end of its supervisor.
//! A rank whose supervisor is gone saves and ends. One that cannot, because its main thread is blocked,
//! ends after [`ORPHAN_GRACE`] anyway: it must not outlive its supervisor and keep a GPU.

use std::time::Duration;

use yolo_base::exit;

/// How long a rank may take to save and end after its supervisor has gone.
pub const ORPHAN_GRACE: Duration = Duration::from_secs(15);

/// Something that happened to a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankInput {
    /// SIGTERM or SIGINT arrived.
    AskedToStop,
    /// Nobody reads the rank's events any more.
    SupervisorGone,
}

/// Something that a rank does besides its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankAction {
    /// Send a heartbeat.
    Heartbeat,
    /// End this process at once with this status, whatever the main thread does.
    Exit(u8),
}

/// The state of a rank apart from its work.
#[derive(Debug, Clone)]
pub struct RankLife {
    interval: Duration,
    next_heartbeat: Option<Duration>,
    asked_to_stop: bool,
    orphaned_at: Option<Duration>,
}

impl RankLife {
    /// A rank that sends a heartbeat at this interval.
    pub fn new(interval: Duration) -> Self {
        Self { interval, next_heartbeat: None, asked_to_stop: false, orphaned_at: None }
    }

    /// Takes what happened at `now`, a time that never goes back.
    pub fn note(&mut self, now: Duration, input: RankInput) {
        match input {
            RankInput::AskedToStop => self.asked_to_stop = true,
            RankInput::SupervisorGone => {
                self.orphaned_at.get_or_insert(now);
            }
        }
    }

    /// What to do at `now`.
    pub fn tick(&mut self, now: Duration) -> Option<RankAction> {
        if let Some(orphaned) = self.orphaned_at {
            return (now >= orphaned + ORPHAN_GRACE).then_some(RankAction::Exit(exit::INTERRUPTED));
        }
        if self.next_heartbeat.is_some_and(|next| now < next) {
            return None;
        }
        self.next_heartbeat = Some(now + self.interval);
        Some(RankAction::Heartbeat)
    }

    /// Whether the main thread should save and end when it next asks. In a run of several ranks, all end
    /// after the same step: they ask each other after each, and one that should end is enough.
    pub fn should_stop(&self) -> bool {
        self.asked_to_stop || self.orphaned_at.is_some()
    }

    /// How long until the next [`Self::tick`] is due.
    pub fn wake_in(&self, now: Duration) -> Duration {
        let next = match self.orphaned_at {
            Some(orphaned) => Some(orphaned + ORPHAN_GRACE),
            None => self.next_heartbeat,
        };
        next.map_or(Duration::ZERO, |next| next.saturating_sub(now)).min(self.interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn heartbeats_come_at_their_interval() {
        let mut life = RankLife::new(SECOND);
        assert_eq!(life.tick(SECOND), Some(RankAction::Heartbeat));
        assert_eq!(life.wake_in(SECOND), SECOND);
        assert_eq!(life.tick(SECOND * 3 / 2), None);
        assert_eq!(life.wake_in(SECOND * 3 / 2), SECOND / 2);
        assert_eq!(life.tick(SECOND * 2), Some(RankAction::Heartbeat));
        assert!(!life.should_stop());
    }

    #[test]
    fn a_rank_ends_soon_after_its_supervisor() {
        let mut life = RankLife::new(SECOND);
        life.note(SECOND, RankInput::SupervisorGone);
        assert_eq!(life.tick(SECOND), None);
        assert!(life.should_stop(), "first it may save");
        life.note(ORPHAN_GRACE, RankInput::SupervisorGone);
        assert_eq!(life.tick(ORPHAN_GRACE), None);
        let end = life.tick(SECOND + ORPHAN_GRACE);
        assert_eq!(end, Some(RankAction::Exit(exit::INTERRUPTED)));
    }

    #[test]
    fn a_request_to_stop_does_not_stop_the_heartbeat() {
        let mut life = RankLife::new(SECOND);
        life.note(SECOND, RankInput::AskedToStop);
        assert_eq!(life.tick(SECOND), Some(RankAction::Heartbeat));
        assert!(life.should_stop());
    }
}

//! Ranks that live but make no progress: their heartbeats come, the count of their steps stands still. The
//! ranks of a run wait for each other in every step, so all stand still when one does. The limit follows
//! from the time of the steps before. Only training is counted in steps; nothing is reported before the
//! first step, nor while a rank validates, saves or prepares.

use std::time::Duration;

use crate::action::Notice;
use crate::rank::Rank;

/// Ranks that stand still for this many mean steps have stalled …
const STEPS: u32 = 10;
/// … and for this many times the longest time without a step that they recovered from.
const LONGEST: u32 = 3;

/// Measures how long a run stands still.
#[derive(Debug, Clone)]
pub(crate) struct Stall {
    /// Nothing shorter is a stall.
    shortest: Duration,
    /// When a rank last made progress.
    moved: Duration,
    /// The longest time without progress, of those that ended.
    longest: Duration,
    /// Whether the present stall was reported.
    reported: bool,
}

impl Stall {
    pub(crate) fn new(shortest: Duration, now: Duration) -> Self {
        Self { shortest, moved: now, longest: Duration::ZERO, reported: false }
    }

    /// A rank made progress. Returns what to tell the user.
    pub(crate) fn moved(&mut self, now: Duration) -> Option<Notice> {
        let stood = now.saturating_sub(self.moved);
        self.longest = self.longest.max(stood);
        self.moved = now;
        let reported = std::mem::take(&mut self.reported);
        reported.then_some(Notice::Recovered { seconds: stood.as_secs_f64() })
    }

    /// Starts to measure anew, after something that is not counted in steps.
    pub(crate) fn restart(&mut self, now: Duration) {
        self.moved = now;
        self.reported = false;
    }

    /// The stall to report, once, if there is one.
    pub(crate) fn check(&mut self, ranks: &[Rank], now: Duration) -> Option<Notice> {
        let step = mean_step(ranks);
        let (Some(step), false) = (step, self.reported) else { return None };
        let stood = now.saturating_sub(self.moved);
        if stood < self.shortest.max(step * STEPS).max(self.longest * LONGEST) {
            return None;
        }
        self.reported = true;
        let (seconds, step) = (stood.as_secs_f64(), step.as_secs_f64());
        Some(Notice::Stalled { ranks: last(ranks), seconds, step })
    }
}

/// The mean time of a step, of the slowest rank; `None` unless every rank trains and has done a step.
fn mean_step(ranks: &[Rank]) -> Option<Duration> {
    let mut slowest = Duration::ZERO;
    for rank in ranks {
        let progress = rank.progress.as_ref().filter(|progress| rank.counts_steps && progress.steps > 0)?;
        let seconds: f64 = progress.seconds.iter().sum();
        let mean = Duration::try_from_secs_f64(seconds / progress.steps as f64).ok()?;
        slowest = slowest.max(mean);
    }
    (!ranks.is_empty()).then_some(slowest)
}

/// The ranks that no rank is behind: those for which the others wait.
fn last(ranks: &[Rank]) -> Vec<usize> {
    let waits = |rank: &Rank| ranks.iter().any(|other| rank.is_ahead_of(other));
    (0..ranks.len()).filter(|&rank| !waits(&ranks[rank])).collect()
}

#[cfg(test)]
mod tests {
    use yolo_plan::event::{Progress, Stage};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn rank(steps: u64, stage: Stage) -> Rank {
        let seconds = [0.0, steps as f64 * 4.0, 0.0];
        let progress = Progress { epoch: 0, batch: 0, batches: 9, steps, images: 0, stage, seconds };
        Rank { progress: Some(progress), counts_steps: true, ..Rank::new() }
    }

    #[test]
    fn the_limit_follows_from_the_steps() {
        let ranks = [rank(5, Stage::Exchanging), rank(5, Stage::Loading)];
        let mut stall = Stall::new(SECOND * 20, Duration::ZERO);
        assert_eq!(stall.check(&ranks, SECOND * 39), None, "10 steps of 4 s are 40 s");
        let stalled = Notice::Stalled { ranks: vec![1], seconds: 40.0, step: 4.0 };
        assert_eq!(stall.check(&ranks, SECOND * 40), Some(stalled));
        assert_eq!(stall.check(&ranks, SECOND * 50), None, "once");
        assert_eq!(stall.moved(SECOND * 60), Some(Notice::Recovered { seconds: 60.0 }));
        assert_eq!(stall.check(&ranks, SECOND * 200), None, "it recovered from 60 s before");
        assert!(stall.check(&ranks, SECOND * 240).is_some());
    }

    #[test]
    fn nothing_stalls_before_its_first_step_or_outside_training() {
        let mut stall = Stall::new(SECOND, Duration::ZERO);
        let hour = SECOND * 3600;
        assert_eq!(stall.check(&[rank(3, Stage::Loading), rank(0, Stage::Computing)], hour), None);
        let validates = Rank { counts_steps: false, ..rank(3, Stage::Loading) };
        assert_eq!(stall.check(&[rank(3, Stage::Exchanging), validates], hour), None);
        assert_eq!(stall.check(&[rank(3, Stage::Loading), Rank::new()], hour), None);
    }

    #[test]
    fn a_rank_that_is_behind_is_the_reason() {
        let ranks = [rank(7, Stage::Loading), rank(6, Stage::Computing), rank(7, Stage::Computing)];
        assert_eq!(last(&ranks), [1]);
        assert_eq!(last(&[rank(7, Stage::Computing), rank(7, Stage::Computing)]), [0, 1]);
    }
}

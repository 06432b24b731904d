//! How fast each rank trains and where its time goes, from the progress in its heartbeats.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use yolo_plan::event::{Progress, Stage};

/// Rates are measured over the last seconds.
const WINDOW: Duration = Duration::from_secs(10);

/// The progress of all ranks.
#[derive(Debug, Default)]
pub(super) struct RankRates {
    ranks: Vec<VecDeque<(Instant, Progress)>>,
    /// The latest progress of each rank.
    latest: Vec<Option<Progress>>,
}

impl RankRates {
    /// Adds what a rank reported at `now`.
    pub(super) fn add(&mut self, rank: usize, now: Instant, progress: &Progress) {
        let count = self.ranks.len().max(rank + 1);
        self.ranks.resize_with(count, VecDeque::new);
        self.latest.resize(count, None);
        let window = &mut self.ranks[rank];
        if window.back().is_some_and(|(_, last)| last.steps > progress.steps) {
            // The rank was started again.
            window.clear();
        }
        window.push_back((now, *progress));
        while window.len() > 2 && window.front().is_some_and(|(at, _)| now.duration_since(*at) > WINDOW) {
            window.pop_front();
        }
        self.latest[rank] = Some(*progress);
    }

    /// Images per second of each rank, once all are known.
    pub(super) fn rates(&self) -> Option<Vec<f64>> {
        self.ranks.iter().map(rate).collect::<Option<Vec<f64>>>().filter(|rates| !rates.is_empty())
    }

    /// The same as text, if there are several ranks: `61.2 + 60.9`.
    pub(super) fn each(&self) -> Option<String> {
        let rates = self.rates().filter(|rates| rates.len() > 1)?;
        let rates: Vec<String> = rates.iter().map(|rate| format!("{rate:.1}")).collect();
        Some(rates.join(" + "))
    }

    /// Where the time of the last seconds went, as in `4 % loading, 93 % computing, 3 % waiting`.
    pub(super) fn shares(&self) -> Option<String> {
        self.recent_shares().map(in_words)
    }

    /// The parts of the last seconds that all ranks together spent in each stage, in the order of
    /// [`Stage::ALL`]. Their sum is 1.
    pub(super) fn recent_shares(&self) -> Option<[f64; 3]> {
        let spent = self.ranks.iter().filter_map(|window| {
            let ((_, first), (_, last)) = (window.front()?, window.back()?);
            Some(std::array::from_fn(|stage| last.seconds[stage] - first.seconds[stage]))
        });
        parts(total(spent))
    }

    /// Where the time of the whole run went.
    pub(super) fn all_shares(&self) -> Option<String> {
        parts(total(self.latest.iter().flatten().map(|progress| progress.seconds))).map(in_words)
    }
}

fn rate(window: &VecDeque<(Instant, Progress)>) -> Option<f64> {
    let ((began, first), (ended, last)) = (window.front()?, window.back()?);
    let seconds = ended.duration_since(*began).as_secs_f64();
    (seconds > 0.0).then(|| (last.images - first.images) as f64 / seconds)
}

fn total(each: impl Iterator<Item = [f64; 3]>) -> [f64; 3] {
    each.fold([0.0; 3], |sum, seconds| std::array::from_fn(|stage| sum[stage] + seconds[stage]))
}

fn parts(seconds: [f64; 3]) -> Option<[f64; 3]> {
    let all: f64 = seconds.iter().sum();
    (all > 0.0).then(|| seconds.map(|spent| spent / all))
}

fn in_words(parts: [f64; 3]) -> String {
    let name = |stage| match stage {
        Stage::Loading => "loading",
        Stage::Computing => "computing",
        Stage::Exchanging => "waiting",
    };
    let shares =
        Stage::ALL.iter().zip(parts).map(|(stage, part)| format!("{:.0} % {}", 100.0 * part, name(*stage)));
    shares.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(steps: u64, seconds: [f64; 3]) -> Progress {
        let stage = Stage::Loading;
        Progress { epoch: 0, batch: 0, batches: 9, steps, images: steps * 8, stage, seconds }
    }

    #[test]
    fn rates_are_those_of_the_last_seconds() {
        let start = Instant::now();
        let mut rates = RankRates::default();
        for second in 0..30u64 {
            // The first seconds are slow.
            let steps = second.saturating_sub(15);
            rates.add(0, start + Duration::from_secs(second), &progress(steps, [0.0; 3]));
            rates.add(1, start + Duration::from_secs(second), &progress(2 * steps, [0.0; 3]));
        }
        assert_eq!(rates.each().unwrap(), "8.0 + 16.0");
        assert_eq!(rates.shares(), None, "no time was spent");
    }

    #[test]
    fn one_rank_has_no_rate_of_its_own() {
        let mut rates = RankRates::default();
        rates.add(0, Instant::now(), &progress(3, [1.0, 2.0, 1.0]));
        assert_eq!(rates.each(), None);
        assert_eq!(rates.all_shares().unwrap(), "25 % loading, 50 % computing, 25 % waiting");
    }

    #[test]
    fn a_restarted_rank_starts_a_new_window() {
        let start = Instant::now();
        let mut rates = RankRates::default();
        for rank in 0..2 {
            rates.add(rank, start, &progress(50, [0.0; 3]));
            rates.add(rank, start + Duration::from_secs(1), &progress(0, [0.0; 3]));
            rates.add(rank, start + Duration::from_secs(2), &progress(1, [0.0; 3]));
        }
        assert_eq!(rates.each().unwrap(), "8.0 + 8.0");
    }
}

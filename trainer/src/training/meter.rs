//! Running numbers of an epoch: losses, images per second, and when to report them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tch::Tensor;

use super::losses::EpochLosses;
use crate::error::TrainError;

/// The minimum time between two reports, so that the live view costs nothing.
const REPORT_EVERY: Duration = Duration::from_millis(100);
/// The rate is measured over the last seconds.
const RATE_WINDOW: Duration = Duration::from_secs(10);

/// The running numbers of one epoch.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub(crate) losses: EpochLosses,
    last_report: Option<Instant>,
    rate: Rate,
}

impl Meter {
    /// A meter that continues the rate of the epoch before.
    pub(crate) fn new(rate: Rate, losses: EpochLosses) -> Self {
        Self { losses, last_report: None, rate }
    }

    /// Adds a step: its three loss items, which stay on their device, and the images of all ranks.
    pub(crate) fn add(&mut self, items: &Tensor, images: usize) -> Result<(), TrainError> {
        self.losses.add(items)?;
        self.rate.add(Instant::now(), images);
        Ok(())
    }

    /// Whether it is time to report. If so, the next interval starts.
    pub(crate) fn due(&mut self) -> bool {
        let due = self.last_report.is_none_or(|last| last.elapsed() >= REPORT_EVERY);
        if due {
            self.last_report = Some(Instant::now());
        }
        due
    }

    /// Images per second over the last seconds.
    pub(crate) fn images_per_second(&self) -> f64 {
        self.rate.per_second()
    }

    /// The rate, for the next epoch's meter.
    pub(crate) fn into_rate(self) -> Rate {
        self.rate
    }
}

/// Images per second over a sliding window. [`Rate::pause`] keeps validation out of it.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    steps: VecDeque<(Instant, usize)>,
}

impl Rate {
    fn add(&mut self, now: Instant, images: usize) {
        self.steps.push_back((now, images));
        while self.steps.len() > 2 && self.steps.front().is_some_and(|(at, _)| now - *at > RATE_WINDOW) {
            self.steps.pop_front();
        }
    }

    /// Starts a new window after a pause.
    pub(crate) fn pause(&mut self) {
        self.steps.clear();
    }

    fn per_second(&self) -> f64 {
        let (Some(first), Some(last)) = (self.steps.front(), self.steps.back()) else { return 0.0 };
        let seconds = (last.0 - first.0).as_secs_f64();
        let images: usize = self.steps.iter().skip(1).map(|step| step.1).sum();
        if seconds > 0.0 { images as f64 / seconds } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_counts_images_after_the_first_step() {
        let start = Instant::now();
        let mut rate = Rate::default();
        for second in 0..5 {
            rate.add(start + Duration::from_secs(second), 8);
        }
        assert!((rate.per_second() - 8.0).abs() < 1e-9);
    }
}

//! Figures of a running epoch: mean losses, images a second, and when to speak of them again.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tch::Tensor;

use crate::error::TrainError;

/// Steps are reported at most this often, so that a live view costs nothing.
const REPORT_EVERY: Duration = Duration::from_millis(100);
/// The rate is that of the last seconds.
const RATE_WINDOW: Duration = Duration::from_secs(10);

/// The figures of one epoch.
#[derive(Debug)]
pub(super) struct Meter {
    sums: Option<Tensor>,
    steps: usize,
    last_report: Option<Instant>,
    rate: Rate,
}

impl Meter {
    /// A meter that continues the rate of the epoch before.
    pub(super) fn new(rate: Rate) -> Self {
        Self { sums: None, steps: 0, last_report: None, rate }
    }

    /// Adds a step: its three loss items, left on their device, and the images of all ranks.
    pub(super) fn add(&mut self, items: &Tensor, images: usize) -> Result<(), TrainError> {
        self.sums = Some(match self.sums.take() {
            Some(sums) => sums.f_add(items)?,
            None => items.f_detach_copy()?,
        });
        self.steps += 1;
        self.rate.add(Instant::now(), images);
        Ok(())
    }

    /// Mean box, objectness and class loss since the epoch's start. Waits for the device.
    pub(super) fn losses(&self) -> Result<[f64; 3], TrainError> {
        let Some(sums) = &self.sums else { return Ok([0.0; 3]) };
        let sums = Vec::<f32>::try_from(sums.f_to_device(tch::Device::Cpu)?)?;
        Ok(std::array::from_fn(|index| {
            sums.get(index).map_or(0.0, |&sum| f64::from(sum) / self.steps as f64)
        }))
    }

    /// Whether it is time to report again; asking starts the next wait.
    pub(super) fn due(&mut self) -> bool {
        let due = self.last_report.is_none_or(|last| last.elapsed() >= REPORT_EVERY);
        if due {
            self.last_report = Some(Instant::now());
        }
        due
    }

    /// Images a second over the last seconds.
    pub(super) fn images_per_second(&self) -> f64 {
        self.rate.per_second()
    }

    /// The rate, for the next epoch's meter.
    pub(super) fn into_rate(self) -> Rate {
        self.rate
    }
}

/// Images a second over a sliding window. Pauses (validation) are cut out by [`Rate::pause`].
#[derive(Debug, Default)]
pub(super) struct Rate {
    steps: VecDeque<(Instant, usize)>,
}

impl Rate {
    fn add(&mut self, now: Instant, images: usize) {
        self.steps.push_back((now, images));
        while self.steps.len() > 2 && self.steps.front().is_some_and(|(at, _)| now - *at > RATE_WINDOW) {
            self.steps.pop_front();
        }
    }

    /// Forgets what came before a pause.
    pub(super) fn pause(&mut self) {
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
    fn the_mean_of_two_steps() {
        let mut meter = Meter::new(Rate::default());
        meter.add(&Tensor::from_slice(&[1.0f32, 2.0, 3.0]), 8).unwrap();
        meter.add(&Tensor::from_slice(&[3.0f32, 2.0, 1.0]), 8).unwrap();
        assert_eq!(meter.losses().unwrap(), [2.0, 2.0, 2.0]);
    }

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

//! Running numbers of an epoch: mean losses, images per second, and when to report them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tch::Tensor;
use tch_train::{Reading, copy_to_device};

use crate::error::TrainError;

/// The minimum time between two reports, so that the live view costs nothing.
const REPORT_EVERY: Duration = Duration::from_millis(100);
/// The rate is measured over the last seconds.
const RATE_WINDOW: Duration = Duration::from_secs(10);

/// Mean losses that may still be on their way from the device.
#[derive(Debug)]
pub(crate) struct Losses {
    sums: Reading,
    steps: usize,
}

impl Losses {
    /// Whether they have arrived. Does not wait.
    pub(crate) fn have_arrived(&self) -> Result<bool, TrainError> {
        Ok(self.sums.has_arrived()?)
    }

    /// The means of box, objectness and class loss. Waits until they have arrived.
    pub(crate) fn means(self) -> Result<[f64; 3], TrainError> {
        Ok(means(numbers(&self.sums.finish()?)?, self.steps))
    }
}

/// The running numbers of one epoch.
#[derive(Debug)]
pub(crate) struct Meter {
    /// The sums before this process trained on the epoch, if it was resumed.
    earlier: [f32; 3],
    sums: Option<Tensor>,
    steps: usize,
    last_report: Option<Instant>,
    rate: Rate,
}

impl Meter {
    /// A meter that continues the rate of the epoch before, and the loss sums of the `steps` that an
    /// interrupted run has done.
    pub(crate) fn new(rate: Rate, loss_sums: [f32; 3], steps: usize) -> Self {
        Self { earlier: loss_sums, sums: None, steps, last_report: None, rate }
    }

    /// Adds a step: its three loss items, which stay on their device, and the images of all ranks.
    pub(crate) fn add(&mut self, items: &Tensor, images: usize) -> Result<(), TrainError> {
        let sums = match self.sums.take() {
            Some(sums) => sums,
            // Without waiting for the device, which works on the first step.
            None => copy_to_device(&Tensor::f_from_slice(&self.earlier)?, items.device())?,
        };
        self.sums = Some(sums.f_add(&items.f_detach()?)?);
        self.steps += 1;
        self.rate.add(Instant::now(), images);
        Ok(())
    }

    /// The sums of box, objectness and class loss since the start of the epoch. Waits for the device.
    pub(crate) fn sums(&self) -> Result<[f32; 3], TrainError> {
        let Some(sums) = &self.sums else { return Ok(self.earlier) };
        numbers(&sums.f_to_device(tch::Device::Cpu)?)
    }

    /// The means since the start of the epoch, without waiting for the device: it has them when it has done the
    /// steps so far.
    pub(crate) fn begin_reading(&self) -> Result<Losses, TrainError> {
        let sums = match &self.sums {
            Some(sums) => Reading::begin(sums)?,
            None => Reading::begin(&Tensor::f_from_slice(&self.earlier)?)?,
        };
        Ok(Losses { sums, steps: self.steps })
    }

    /// The means of box, objectness and class loss since the start of the epoch. Waits for the
    /// device.
    pub(crate) fn losses(&self) -> Result<[f64; 3], TrainError> {
        Ok(means(self.sums()?, self.steps))
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

/// The three numbers of a tensor on the CPU.
fn numbers(sums: &Tensor) -> Result<[f32; 3], TrainError> {
    let sums = Vec::<f32>::try_from(sums)?;
    Ok(std::array::from_fn(|index| sums.get(index).copied().unwrap_or_default()))
}

fn means(sums: [f32; 3], steps: usize) -> [f64; 3] {
    sums.map(|sum| f64::from(sum) / steps.max(1) as f64)
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
    fn a_resumed_epoch_has_the_means_of_all_its_steps() {
        let mut meter = Meter::new(Rate::default(), [2.0, 4.0, 6.0], 2);
        assert_eq!(meter.losses().unwrap(), [1.0, 2.0, 3.0], "also without another step");
        meter.add(&Tensor::from_slice(&[4.0f32, 5.0, 6.0]), 8).unwrap();
        assert_eq!(meter.sums().unwrap(), [6.0, 9.0, 12.0]);
        assert_eq!(meter.losses().unwrap(), [2.0, 3.0, 4.0]);
    }

    #[test]
    fn losses_are_means_over_the_steps() {
        let mut meter = Meter::new(Rate::default(), [0.0; 3], 0);
        meter.add(&Tensor::from_slice(&[1.0f32, 2.0, 3.0]), 8).unwrap();
        meter.add(&Tensor::from_slice(&[3.0f32, 2.0, 1.0]), 8).unwrap();
        assert_eq!(meter.losses().unwrap(), [2.0, 2.0, 2.0]);
    }

    #[test]
    fn losses_that_are_read_later_are_those_of_their_step() {
        let mut meter = Meter::new(Rate::default(), [0.0; 3], 0);
        meter.add(&Tensor::from_slice(&[1.0f32, 2.0, 3.0]), 8).unwrap();
        let losses = meter.begin_reading().unwrap();
        meter.add(&Tensor::from_slice(&[3.0f32, 2.0, 1.0]), 8).unwrap();
        assert!(losses.have_arrived().unwrap());
        assert_eq!(losses.means().unwrap(), [1.0, 2.0, 3.0]);
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

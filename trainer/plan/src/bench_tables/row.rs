//! A row: one run, and its speed compared with that of one device.

use serde::Serialize;

use super::Spread;
use crate::bench_report::{Rate, Together};

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// One per rank: `cpu`, or `cuda:` and the number that nvidia-smi shows.
    pub devices: Vec<String>,
    /// Images per training step over all devices.
    pub batch: usize,
    /// Images per training step of each device.
    pub batch_per_device: usize,
    /// CPU threads of the network on each device.
    pub threads_per_device: usize,
    /// Loader threads for each device.
    pub workers_per_device: usize,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum Outcome {
    /// With numbers.
    Measured(Epochs),
    /// Memory ran out.
    OutOfMemory {
        /// What the run reported.
        message: String,
    },
    /// With an error.
    Failed {
        /// The error.
        message: String,
    },
    /// It was not started.
    NotMeasured {
        /// Why not.
        message: String,
    },
}

/// The numbers of a run. Epochs are those of the data set, without what happens between them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Epochs {
    /// Images per second of training, over all devices.
    pub images_per_second: Spread,
    /// Images of the training split.
    pub images: usize,
    /// Seconds of training per epoch.
    pub seconds: f64,
    /// Images per second of validation, over all devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_images_per_second: Option<Spread>,
    /// Seconds of validation per epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_seconds: Option<f64>,
    /// The most memory of any rank in training, in bytes.
    pub memory: u64,
    /// How many times as fast as one device.
    pub speed_up: Option<f64>,
    /// The speed-up divided by the ideal one.
    pub efficiency: Option<f64>,
}

impl Outcome {
    /// The numbers of a run that reported this.
    pub fn of(together: &Together) -> Self {
        let Some(images_per_second) = spread(&together.training) else {
            return Self::Failed { message: "the run reported no speed".to_owned() };
        };
        let per_epoch = |images: usize, rate: Spread| images as f64 / rate.median;
        let validation = spread(&together.validation);
        Self::Measured(Epochs {
            images_per_second,
            images: together.training_images,
            seconds: per_epoch(together.training_images, images_per_second),
            validation_images_per_second: validation,
            validation_seconds: validation.map(|rate| per_epoch(together.validation_images, rate)),
            memory: together.memory.iter().copied().max().unwrap_or(0),
            speed_up: None,
            efficiency: None,
        })
    }

    /// The numbers, if there are any.
    pub fn epochs(&self) -> Option<&Epochs> {
        match self {
            Self::Measured(epochs) => Some(epochs),
            _ => None,
        }
    }
}

/// Rounds without an image or without time say nothing.
fn spread(rounds: &[Rate]) -> Option<Spread> {
    Spread::of(rounds.iter().map(|rate| rate.images_per_second).filter(|rate| *rate > 0.0))
}

impl Row {
    /// Whether the devices are the CPU.
    pub fn on_cpu(&self) -> bool {
        self.devices.iter().any(|device| device == "cpu")
    }

    /// The speed-up over `one` that cannot be exceeded: on GPUs the number of devices; on the CPU, where
    /// ranks are no devices, the ratio of the CPU threads.
    pub fn ideal_speed_up(&self, one: &Self) -> f64 {
        let units = |row: &Self| match self.on_cpu() {
            true => row.devices.len() * row.threads_per_device,
            false => row.devices.len(),
        };
        units(self) as f64 / units(one).max(1) as f64
    }

    /// Whether this row is faster than its devices can make it, so that the row of one device, with which it is
    /// compared, must have been slowed down. Ranks on the CPU, with fewer threads each, may be a little faster.
    pub fn exceeds_the_ideal(&self) -> bool {
        const PLAUSIBLE: f64 = 1.25;
        self.outcome.epochs().and_then(|epochs| epochs.efficiency).is_some_and(|part| part > PLAUSIBLE)
    }

    /// Sets speed-up and efficiency, if both rows were measured.
    pub(super) fn compare_with(&mut self, one: &Self) {
        let ideal = self.ideal_speed_up(one);
        if let (Outcome::Measured(epochs), Some(one)) = (&mut self.outcome, one.outcome.epochs()) {
            let speed_up = epochs.images_per_second.median / one.images_per_second.median;
            epochs.speed_up = Some(speed_up);
            epochs.efficiency = Some(speed_up / ideal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(device: &str, ranks: usize, threads: usize, images_per_second: f64) -> Row {
        let rounds = [0.9, 1.0, 1.2].map(|factor| Rate::new(100, 100.0 / (images_per_second * factor)));
        let together = Together {
            training: rounds.to_vec(),
            training_images: 1000,
            validation: Vec::new(),
            validation_images: 0,
            memory: vec![1 << 30, 2 << 30],
        };
        Row {
            devices: vec![device.to_owned(); ranks],
            batch: 16 * ranks,
            batch_per_device: 16,
            threads_per_device: threads,
            workers_per_device: 1,
            outcome: Outcome::of(&together),
        }
    }

    fn compared(mut row: Row, one: &Row) -> (f64, f64) {
        row.compare_with(one);
        let epochs = row.outcome.epochs().unwrap();
        (epochs.speed_up.unwrap(), epochs.efficiency.unwrap())
    }

    #[test]
    fn an_epoch_takes_its_images_divided_by_the_median() {
        let row = row("cuda:0", 1, 4, 50.0);
        let epochs = row.outcome.epochs().unwrap();
        assert!((epochs.seconds - 20.0).abs() < 1e-9, "{epochs:?}");
        assert!((epochs.images_per_second.relative() - 0.3).abs() < 1e-9);
        assert_eq!((epochs.memory, epochs.validation_seconds), (2 << 30, None));
    }

    #[test]
    fn efficiency_is_the_part_of_the_ideal_speed_up() {
        let near = |(speed_up, efficiency): (f64, f64), expected: [f64; 2]| {
            assert!((speed_up - expected[0]).abs() < 1e-9 && (efficiency - expected[1]).abs() < 1e-9);
        };
        let one = row("cuda:0", 1, 4, 100.0);
        near(compared(row("cuda:0", 4, 4, 380.0), &one), [3.8, 0.95]);
        near(compared(one.clone(), &one), [1.0, 1.0]);
        // Two ranks share the threads that one had: nothing is gained if they are as fast.
        near(compared(row("cpu", 2, 1, 97.0), &row("cpu", 1, 2, 100.0)), [0.97, 0.97]);
        // Each rank has as many threads as the one.
        near(compared(row("cpu", 2, 1, 180.0), &row("cpu", 1, 1, 100.0)), [1.8, 0.9]);
    }

    #[test]
    fn more_than_the_ideal_cannot_be() {
        let exceeds = |speed: f64| {
            let mut two = row("cpu", 2, 1, speed);
            two.compare_with(&row("cpu", 1, 2, 100.0));
            two.exceeds_the_ideal()
        };
        assert!(!exceeds(97.0));
        assert!(!exceeds(110.0));
        assert!(exceeds(1800.0));
        assert!(!row("cpu", 2, 1, 1800.0).exceeds_the_ideal(), "it is compared with nothing");
    }

    #[test]
    fn a_row_without_numbers_is_compared_with_nothing() {
        let failed = || Row {
            outcome: Outcome::Failed { message: "rank 1 failed".to_owned() },
            ..row("cuda:0", 2, 4, 1.0)
        };
        let mut row = row("cuda:0", 2, 4, 100.0);
        row.compare_with(&failed());
        assert_eq!(row.outcome.epochs().unwrap().speed_up, None);
        let mut failed = failed();
        failed.compare_with(&row);
        assert!(failed.outcome.epochs().is_none());
    }

    #[test]
    fn a_run_without_a_speed_has_failed() {
        let nothing = Together {
            training: vec![Rate::new(0, 1.0)],
            training_images: 8,
            validation: Vec::new(),
            validation_images: 0,
            memory: Vec::new(),
        };
        assert!(matches!(Outcome::of(&nothing), Outcome::Failed { .. }));
    }
}

//! The results of `yolo bench`: what a rank measures and sends as events, and the report that
//! `yolo bench --json` prints. The report is part of the program's interface: a field is never
//! removed and never changes its meaning without a new [`VERSION`].

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::auto_batch::BatchMemory;
use crate::bench_workers::{self as workers, Advice};
use crate::device::Device;
use crate::run::{BenchTask, RunPlan, Task};

/// Version of the report.
pub const VERSION: u32 = 1;

/// Everything that a benchmark measured, and on what.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// The version of `yolo`.
    pub program: String,
    /// `cpu`, or `cuda:` and the number that nvidia-smi shows.
    pub device: String,
    /// The name of the model, or of the weights file that describes it.
    pub model: String,
    /// Side of the square network input in pixels.
    pub image_size: usize,
    /// Images per training step.
    pub batch: usize,
    /// The number format of the network in training: `fp32`, `fp16` or `bf16`.
    pub precision: &'static str,
    /// CPU threads of the network.
    pub threads: usize,
    /// The measurements, in the order in which they were made.
    pub measurements: Vec<Measurement>,
    /// What limits training; `None` if the loader or the network alone was not measured.
    pub limit: Option<Limit>,
    /// The answer of `--workers auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<Advice>,
}

/// One measurement of a rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "lowercase")]
pub enum Measurement {
    /// Training steps.
    Training {
        /// Where the batches come from.
        source: Source,
        /// Loader threads; `None` if no loader takes part.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workers: Option<usize>,
        /// How fast.
        #[serde(flatten)]
        rate: Rate,
        /// Where the time of a step goes.
        phases: StepPhases,
        /// How often the CPU waits for the GPU in a step, in the mean. A GPU idles from the end of its
        /// work until the CPU has given it more. `None` on the CPU.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host_waits: Option<f64>,
        /// The part of the time of a step, which an idle GPU begins, after which the CPU has given the GPU all of its
        /// work. Near 1, the GPU waits for launches, which CUDA graphs would save. `None` on the CPU.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        launch_share: Option<f64>,
    },
    /// The training loader alone.
    Loader {
        /// Its threads.
        workers: usize,
        /// How fast.
        #[serde(flatten)]
        rate: Rate,
        /// Where the time goes. `None` in reports of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stages: Option<LoaderStages>,
    },
    /// Validation, as `yolo val` does it.
    Validation {
        /// How fast.
        #[serde(flatten)]
        rate: Rate,
        /// Where the time goes.
        phases: ValPhases,
    },
    /// What all ranks of a run reached together, for a row of a table.
    Together(Together),
    /// The memory that training needs with several batches, for `yolo train --batch -1`.
    Memory(BatchMemory),
}

/// What all ranks of a run reached together, in several rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Together {
    /// Training, each round.
    pub training: Vec<Rate>,
    /// Images of the training split.
    pub training_images: usize,
    /// Validation, each round; empty if it was not measured.
    pub validation: Vec<Rate>,
    /// Images of the validation split; 0 if it was not measured.
    pub validation_images: usize,
    /// The most memory that each rank had in training, in bytes: on a GPU what libtorch had reserved
    /// there, on the CPU the resident memory of the process.
    pub memory: Vec<u64>,
}

impl Measurement {
    /// Images per second of the network alone, if this is their measurement.
    pub fn network(&self) -> Option<f64> {
        match self {
            Self::Training { source: Source::Synthetic, rate, .. } => Some(rate.images_per_second),
            _ => None,
        }
    }
}

/// Where the batches of training steps come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// From the images of the data set.
    Files,
    /// One batch of them, loaded once and kept on the device.
    Synthetic,
}

/// A number of images in a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Images.
    pub images: usize,
    /// Seconds.
    pub seconds: f64,
    /// Images per second.
    pub images_per_second: f64,
    /// When the measurement began, in seconds since 1970, so that a program that watches the device can
    /// tell what it saw meanwhile.
    #[serde(default)]
    pub began: f64,
}

impl Rate {
    /// The rate of this many images since `began`.
    pub fn since(began: Instant, images: usize) -> Self {
        let elapsed = began.elapsed();
        let at = (SystemTime::now() - elapsed).duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { began: at.as_secs_f64(), ..Self::new(images, elapsed.as_secs_f64()) }
    }

    /// The rate of this many images in this many seconds.
    pub fn new(images: usize, seconds: f64) -> Self {
        let images_per_second = if seconds > 0.0 { images as f64 / seconds } else { 0.0 };
        Self { images, seconds, images_per_second, began: 0.0 }
    }
}

/// The phases of a training step: seconds while they are measured, shares of their sum in a report.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct StepPhases {
    /// Waiting for the loader.
    pub wait: f64,
    /// Copying the images to the device and scaling them to 0..1.
    pub copy: f64,
    /// The forward pass.
    pub forward: f64,
    /// Target assignment and loss.
    pub loss: f64,
    /// The backward pass.
    pub backward: f64,
    /// Clipping, the optimizer's step and the moving average, divided by the number of batches for
    /// which a run makes them once.
    pub optimizer: f64,
}

impl StepPhases {
    /// The phases as shares of their sum.
    #[must_use]
    pub fn shares(self) -> Self {
        let Self { wait, copy, forward, loss, backward, optimizer } = self;
        let [wait, copy, forward, loss, backward, optimizer] =
            shares([wait, copy, forward, loss, backward, optimizer]);
        Self { wait, copy, forward, loss, backward, optimizer }
    }
}

/// Where the time of a loader goes whose batches are copied to the device, as in training. `decode`, `augment` and
/// `queue` are shares of the time of the loader's threads and add up to 1; `copy` is a share of the time of the thread
/// that takes the batches.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LoaderStages {
    /// Reading, decoding and resizing images.
    pub decode: f64,
    /// Transform, colors, flips and labels.
    pub augment: f64,
    /// Threads without work: finished batches wait for the thread that takes them, or a batch for its last image.
    pub queue: f64,
    /// Copying batches to the device and making numbers from 0 to 1 of their bytes.
    pub copy: f64,
}

/// A stage of the loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "see LoaderStages")]
pub enum LoaderStage {
    Decode,
    Augment,
    Queue,
    Copy,
}

impl LoaderStages {
    /// The stages of `workers` threads that decoded and augmented for these seconds, all together, while the thread that
    /// takes the batches needed `seconds` and copied in `copy` of them.
    pub fn new([decode, augment, copy]: [f64; 3], workers: usize, seconds: f64) -> Self {
        // Batches that were begun before or end later make the sum inexact.
        let threads = (workers.max(1) as f64 * seconds).max(decode + augment);
        let share = |part: f64, whole: f64| if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 };
        let [decode, augment] = [decode, augment].map(|part| share(part, threads));
        let queue = if threads > 0.0 { (1.0 - decode - augment).max(0.0) } else { 0.0 };
        Self { decode, augment, queue, copy: share(copy, seconds) }
    }

    /// The stage that limits the loader: copying, if the thread that takes the batches is busier than the loader's
    /// threads; otherwise what these do most.
    pub fn limit(&self) -> LoaderStage {
        let Self { decode, augment, queue, copy } = *self;
        let busy = decode + augment;
        if copy > busy {
            LoaderStage::Copy
        } else if queue > busy {
            LoaderStage::Queue
        } else if decode >= augment {
            LoaderStage::Decode
        } else {
            LoaderStage::Augment
        }
    }
}

/// The phases of a validation, without waiting for its loader: seconds while they are measured,
/// shares of their sum in a report.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ValPhases {
    /// Copying the images to the device and scaling them to 0..1.
    pub preprocess: f64,
    /// The model.
    pub inference: f64,
    /// Non-maximum suppression, and the comparison with the labels.
    pub nms: f64,
}

impl ValPhases {
    /// The phases as shares of their sum.
    #[must_use]
    pub fn shares(self) -> Self {
        let [preprocess, inference, nms] = shares([self.preprocess, self.inference, self.nms]);
        Self { preprocess, inference, nms }
    }
}

/// Parts of a sum as shares of it.
fn shares<const N: usize>(parts: [f64; N]) -> [f64; N] {
    let sum: f64 = parts.iter().sum();
    parts.map(|part| if sum > 0.0 { part / sum } else { 0.0 })
}

/// What limits training: the slower of the two when each works alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// The network on its device.
    Network,
    /// The data loader.
    Loader,
}

impl Report {
    /// The report of a plan's measurements; `None` if the plan is not that of a benchmark.
    pub fn new(plan: &RunPlan, measurements: Vec<Measurement>) -> Option<Self> {
        let Task::Bench(task) = &plan.task else { return None };
        let mut report = Self {
            version: VERSION,
            program: plan.program.clone(),
            device: plan.ranks.devices.first().map(device_name).unwrap_or_default(),
            model: model_name(task),
            image_size: task.training.image_size,
            batch: task.training.batch,
            precision: task.training.precision.name(),
            threads: plan.ranks.threads,
            measurements,
            limit: None,
            workers: None,
        };
        report.limit = report.alone().map(|alone| match alone.loader < alone.network {
            true => Limit::Loader,
            false => Limit::Network,
        });
        if task.choose_workers {
            report.workers = workers::advice(&report.loaders(), report.network(), task.training.workers);
        }
        Some(report)
    }

    /// The speeds of the network and of the loader, each alone; `None` if one was not measured.
    pub fn alone(&self) -> Option<Alone> {
        let network = self.network()?;
        // Training has as many threads as the largest measured loader.
        let (workers, loader) = self.loaders().into_iter().max_by_key(|(workers, _)| *workers)?;
        Some(Alone { network, loader, workers })
    }

    /// Images per second of the network alone, if that was measured.
    fn network(&self) -> Option<f64> {
        self.measurements.iter().find_map(Measurement::network)
    }

    /// The numbers of loader threads with their images per second, as they were measured.
    fn loaders(&self) -> Vec<(usize, f64)> {
        let loader = |measured: &Measurement| match measured {
            Measurement::Loader { workers, rate, .. } => Some((*workers, rate.images_per_second)),
            _ => None,
        };
        self.measurements.iter().filter_map(loader).collect()
    }

    /// The report as JSON.
    pub fn to_json(&self) -> String {
        // The types have string keys only, so this cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// The speeds of network and loader when each works alone, in images per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alone {
    /// Training on a batch that stays on the device.
    pub network: f64,
    /// The loader with the threads that training has.
    pub loader: f64,
    /// The number of these threads.
    pub workers: usize,
}

pub(crate) fn device_name(device: &Device) -> String {
    match device {
        Device::Cpu => "cpu".to_owned(),
        Device::Cuda(index) => format!("cuda:{index}"),
        Device::Mig { uuid, .. } => uuid.to_string(),
    }
}

pub(crate) fn model_name(task: &BenchTask) -> String {
    let of_weights = || {
        let stem = task.training.weights.as_deref()?.file_stem()?;
        Some(stem.to_string_lossy().into_owned())
    };
    let of_yaml = task.training.model.as_ref().map(|model| model.name.clone());
    of_yaml.or_else(of_weights).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_one() {
        let seconds =
            StepPhases { wait: 0.5, copy: 0.25, forward: 1.0, loss: 0.25, backward: 1.5, optimizer: 0.5 };
        let shares = seconds.shares();
        assert_eq!((shares.wait, shares.forward, shares.backward), (0.125, 0.25, 0.375));
        let shares = ValPhases { preprocess: 1.0, inference: 2.0, nms: 1.0 }.shares();
        assert_eq!((shares.preprocess, shares.inference, shares.nms), (0.25, 0.5, 0.25));
        assert_eq!(ValPhases::default().shares(), ValPhases::default(), "nothing was measured");
    }

    #[test]
    fn the_stage_that_limits_the_loader_is_the_busiest() {
        use LoaderStage::{Augment, Copy, Decode, Queue};
        // Two threads for ten seconds: 20 seconds in all.
        let stages = LoaderStages::new([12.0, 7.0, 1.0], 2, 10.0);
        assert_eq!((stages.decode, stages.augment, stages.copy), (0.6, 0.35, 0.1));
        assert!((stages.queue - 0.05).abs() < 1e-9);
        let limit = |parts, workers| LoaderStages::new(parts, workers, 10.0).limit();
        assert_eq!(limit([12.0, 7.0, 1.0], 2), Decode);
        assert_eq!(limit([7.0, 12.0, 1.0], 2), Augment);
        assert_eq!(limit([2.0, 3.0, 9.0], 2), Copy);
        // Eight threads of which most have nothing to do, and nobody copies.
        assert_eq!(limit([10.0, 6.0, 1.0], 8), Queue);
        assert_eq!(LoaderStages::new([1.0, 1.0, 1.0], 1, 0.0).copy, 0.0, "nothing was measured");
        let more_than_there_is = LoaderStages::new([12.0, 9.0, 1.0], 2, 10.0);
        assert!(more_than_there_is.queue < 1e-9);
    }

    #[test]
    fn a_rate_without_time_is_zero() {
        assert_eq!(Rate::new(8, 2.0).images_per_second, 4.0);
        assert_eq!(Rate::new(8, 0.0).images_per_second, 0.0);
    }
}

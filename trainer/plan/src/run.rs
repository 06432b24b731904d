//! The plan of a run: everything that options, files and the machine leave undecided is decided
//! here, once, before a process starts. The command writes it as `plan.json` into the run folder
//! and every rank reads it from there, so that no two ranks can disagree.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::dataset::DataSet;
use crate::device::{Backend, Device};
use crate::hyp::HyperParameters;
use crate::model::ModelSpec;
use crate::options::{Cache, Optimizer};

/// Version of the plan file; a trainer refuses another.
pub const PLAN_VERSION: u32 = 1;

/// A run, decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// [`PLAN_VERSION`] of the writer.
    pub version: u32,
    /// The version of `yolo` that wrote the plan; a trainer of another version refuses it.
    pub program: String,
    /// Ranks and where they run.
    pub ranks: Ranks,
    /// The data set, resolved to folders that exist.
    pub data: DataSet,
    /// Size of the square network input in pixels, a multiple of the largest stride.
    pub image_size: usize,
    /// Threads that load and augment images, a rank.
    pub workers: usize,
    /// Where outputs go: `runs/train/exp3`.
    pub run_dir: PathBuf,
    /// What the ranks do.
    pub task: Task,
}

/// Ranks of a run and the batch that they share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranks {
    /// The device of every local rank, in order of LOCAL_RANK.
    pub devices: Vec<Device>,
    /// Ranks over all machines.
    pub world_size: usize,
    /// How ranks talk; `None` for a single rank.
    pub backend: Option<Backend>,
    /// CPU threads of one rank.
    pub threads: usize,
    /// Images a step over all ranks.
    pub batch: usize,
}

impl Ranks {
    /// Images a step on one rank.
    pub fn batch_per_rank(&self) -> usize {
        self.batch / self.world_size
    }
}

/// What the ranks of a run do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Task {
    /// Train a detector.
    Train(Box<TrainTask>),
    /// Measure a detector.
    Val(Box<ValTask>),
}

/// The part of a plan that only training needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is the option of the same name, with its default applied")]
pub struct TrainTask {
    /// The file whose tensors the model starts from; `None` starts from random weights.
    pub weights: Option<PathBuf>,
    /// The model when a yaml decides it; `None` when the weights' own description does.
    pub model: Option<ModelSpec>,
    pub hyp: HyperParameters,
    pub epochs: usize,
    pub nominal_batch: usize,
    pub optimizer: Optimizer,
    pub sync_bn: bool,
    pub seed: u64,
    pub nosave: bool,
    pub noval: bool,
    pub autoanchor: bool,
    pub plots: bool,
    /// Indices of the layers that do not learn.
    pub freeze: Vec<usize>,
    pub cos_lr: bool,
    pub label_smoothing: f64,
    /// Epochs without a better fitness before training stops; `None` never stops.
    pub patience: Option<usize>,
    pub save_period: Option<usize>,
    pub single_cls: bool,
    pub rect: bool,
    pub cache: Option<Cache>,
    /// Continue from this checkpoint of the same run folder.
    pub resume: Option<PathBuf>,
}

/// The part of a plan that only validation needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is the option of the same name, with its default applied")]
pub struct ValTask {
    pub weights: Vec<PathBuf>,
    pub conf_thres: f64,
    pub iou_thres: f64,
    pub max_det: usize,
    pub split: Split,
    pub mode: ValMode,
    pub single_cls: bool,
    pub augment: bool,
    pub verbose: bool,
    pub save_txt: bool,
    pub save_hybrid: bool,
    pub save_conf: bool,
    pub save_json: bool,
    pub half: bool,
}

/// Which images of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "standard terms")]
pub enum Split {
    Train,
    Val,
    Test,
}

/// What a validation measures (spec §9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValMode {
    /// Accuracy at one image size.
    Accuracy,
    /// Speed: confidence 0.25, IoU 0.45, square images.
    Speed,
    /// Accuracy at sizes 256 to 1536 in steps of 128.
    Study,
}

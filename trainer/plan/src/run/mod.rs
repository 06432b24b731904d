//! The plan of a run: all decisions that follow from options, files and the machine, made once,
//! before a process starts. The command writes it to `plan.json` in the run folder, and every rank
//! reads it from there.
//!
//! Invariant: ranks decide nothing by themselves, so that no two ranks can disagree.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::dataset::DataSet;
use crate::device::{Backend, Device, Inventory};
use crate::error::PlanError;
use crate::hyp::HyperParameters;
use crate::model::ModelSpec;
use crate::options::{Cache, Optimizer};

mod defaults;
mod folder;
mod need;
mod resume;
mod settings;
mod train;
mod val;
mod weights;

pub use defaults::EffectiveOptions;
pub use folder::{increment, newest_checkpoint};
pub use need::{Need, PlanContext, Planning};
pub use resume::plan_resume;
pub use settings::settings;
pub use train::plan_train;
pub use val::plan_val;

/// The name of the plan's file in the run folder.
pub const PLAN_FILE: &str = "plan.json";

/// Version of the plan file; a trainer refuses any other.
pub const PLAN_VERSION: u32 = 2;

/// A planned run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// [`PLAN_VERSION`] of the writer.
    pub version: u32,
    /// The version of `yolo` that wrote the plan; a trainer of another version refuses it.
    pub program: String,
    /// The ranks and their devices.
    pub ranks: Ranks,
    /// Where outputs go: `runs/train/exp3`.
    pub run_dir: PathBuf,
    /// What the ranks do.
    pub task: Task,
}

/// A plan, and what the user should read before it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// The plan.
    pub plan: RunPlan,
    /// What was changed or ignored, one sentence each.
    pub warnings: Vec<String>,
    /// What was chosen automatically, one sentence each.
    pub notes: Vec<String>,
}

impl RunPlan {
    /// Whether the plan continues an earlier run in its folder.
    pub fn resumes(&self) -> bool {
        matches!(&self.task, Task::Train(task) if task.resume.is_some())
    }

    /// Writes the plan as `plan.json` into its run folder, which must exist, and returns the path.
    /// The file is replaced atomically.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn write(&self) -> Result<PathBuf, PlanError> {
        let path = self.run_dir.join(PLAN_FILE);
        let text = serde_json::to_string_pretty(self).map_err(|error| {
            PlanError::new(format!("the plan of this run cannot be written as JSON: {error}"))
        })?;
        let unfinished = self.run_dir.join(format!("{PLAN_FILE}.{}.part", std::process::id()));
        std::fs::write(&unfinished, text + "\n").and_then(|()| std::fs::rename(&unfinished, &path)).map_err(
            |error| {
                // The error of the removal would hide the error of the write.
                let _ = std::fs::remove_file(&unfinished);
                PlanError::new(format!("cannot write the plan {}: {error}", path.display()))
                    .with_hint("name a writable folder with --project")
            },
        )?;
        Ok(path)
    }

    /// Reads a plan that [`Self::write`] wrote.
    ///
    /// # Errors
    /// When the file is not a plan, or one of another version.
    pub fn read(path: &Path) -> Result<Self, PlanError> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| PlanError::new(format!("cannot read the plan {shown}: {error}")))?;
        let damaged =
            |error: serde_json::Error| PlanError::new(format!("{shown} is not a run plan: {error}"));
        let value: serde_json::Value = serde_json::from_str(&text).map_err(damaged)?;
        match value.get("version").and_then(serde_json::Value::as_u64) {
            Some(version) if version == u64::from(PLAN_VERSION) => {}
            Some(version) => {
                return Err(PlanError::new(format!(
                    "the plan {shown} has version {version}, but this program reads only version {PLAN_VERSION}"
                ))
                .with_hint("use the version of yolo that wrote it, or start a new run"));
            }
            None => {
                return Err(PlanError::new(format!("{shown} is not a run plan: it has no version")));
            }
        }
        serde_json::from_value(value).map_err(damaged)
    }
}

/// The largest side of an image in pixels.
const MAX_IMAGE_SIZE: usize = 1 << 14;

/// Checks `--imgsz` and rounds it up to a size that the model supports (spec §6).
fn image_size(
    size: usize,
    stride: usize,
    floor: usize,
    warnings: &mut Vec<String>,
) -> Result<usize, PlanError> {
    if size == 0 || size > MAX_IMAGE_SIZE {
        return Err(PlanError::new(format!(
            "--imgsz {size} is not a number of pixels from 1 to {MAX_IMAGE_SIZE}"
        )));
    }
    let rounded = crate::schedule::round_image_size(size, stride, floor);
    if rounded != size {
        let why = if size < floor && rounded == floor {
            format!("is below the smallest size {floor}")
        } else {
            format!("is not a multiple of the model's largest stride {stride}")
        };
        warnings.push(format!("--imgsz {size} {why}: using {rounded}"));
    }
    Ok(rounded)
}

/// One rank per device, each with an equal share of the cores.
fn ranks(devices: Vec<Device>, inventory: &Inventory) -> Ranks {
    let world_size = devices.len();
    let on_cpu = devices.contains(&Device::Cpu);
    Ranks {
        backend: (world_size > 1).then_some(if on_cpu { Backend::Gloo } else { Backend::Nccl }),
        threads: (inventory.cores / world_size).max(1),
        devices,
        world_size,
    }
}

/// Loader threads per rank: no more than the rank's share of the cores and of the batch.
fn workers(asked: Option<usize>, ranks: &Ranks, batch: usize, inventory: &Inventory) -> usize {
    const DEFAULT: usize = 8;
    asked.unwrap_or(DEFAULT).min(inventory.cores / ranks.world_size).min(ranks.share(batch)).max(1)
}

/// The class name of a run with `--single-cls` on a data set of several classes, as in YOLOv5.
const SINGLE_CLASS: &str = "item";

/// Merges all classes of a data set into one, for `--single-cls`. A single class keeps its name.
fn merge_classes(data: &mut DataSet) {
    if data.names.len() != 1 {
        data.names = vec![SINGLE_CLASS.to_owned()];
    }
}

/// The version that `yolo` and the trainer share.
fn program() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// The ranks of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranks {
    /// The device of every local rank, in order of LOCAL_RANK.
    pub devices: Vec<Device>,
    /// Ranks over all machines.
    pub world_size: usize,
    /// How ranks communicate; `None` for a single rank.
    pub backend: Option<Backend>,
    /// CPU threads per rank.
    pub threads: usize,
}

impl Ranks {
    /// One rank's share of a batch, which is always a multiple of the number of ranks.
    pub fn share(&self, batch: usize) -> usize {
        batch / self.world_size
    }
}

/// What the ranks of a run do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Task {
    /// Train a detector.
    Train(Box<TrainTask>),
    /// Validate a detector.
    Val(Box<ValTask>),
    /// Test the devices, the links between them and the disk: `yolo doctor --deep`.
    Probe(ProbeTask),
}

/// The test of `yolo doctor --deep`. Each measurement takes about a second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeTask {
    /// Only the all-reduce: for pairs of ranks, after all ranks together have failed.
    pub links_only: bool,
    /// Images to read and decode; empty without `--data`.
    pub images: Vec<PathBuf>,
}

/// A training run. `opt.yaml` has these fields as well, see [`settings()`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is the option of the same name, with its default applied")]
pub struct TrainTask {
    /// The file whose tensors the model starts from; `None` for random weights.
    pub weights: Option<PathBuf>,
    /// The model if a YAML describes it; `None` if the weights do.
    pub model: Option<ModelSpec>,
    /// The data set, resolved to paths that exist.
    pub data: DataSet,
    pub hyp: HyperParameters,
    pub epochs: usize,
    /// Images per step over all ranks.
    pub batch: usize,
    pub nominal_batch: usize,
    /// Side of the square network input in pixels, a multiple of the largest stride.
    pub image_size: usize,
    pub rect: bool,
    /// Continue from this checkpoint of the same run folder.
    pub resume: Option<PathBuf>,
    pub nosave: bool,
    pub noval: bool,
    pub autoanchor: bool,
    pub plots: bool,
    pub cache: Option<Cache>,
    pub single_cls: bool,
    pub optimizer: Optimizer,
    pub sync_bn: bool,
    /// Loader threads per rank.
    pub workers: usize,
    pub cos_lr: bool,
    pub label_smoothing: f64,
    /// Epochs without a better fitness before training stops; `None` never stops.
    pub patience: Option<usize>,
    /// Indices of frozen layers.
    pub freeze: Vec<usize>,
    pub save_period: Option<usize>,
    pub seed: u64,
}

/// The part of a plan that only validation needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is the option of the same name, with its default applied")]
pub struct ValTask {
    /// The data set, resolved to paths that exist.
    pub data: DataSet,
    /// Side of the square network input in pixels, a multiple of the largest stride.
    pub image_size: usize,
    /// Images per step.
    pub batch: usize,
    /// Loader threads.
    pub workers: usize,
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

//! The task and the plan of `yolo train`: applies defaults, finds files, and derives the image size and the workers.
//! `train_checks.rs` has what the options decide by themselves.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use yolo_base::format::{count, list};

use super::planning::need_data_set;
use super::resume::{Resumed, plan_resume};
use super::train_checks::{Checked, model};
use super::{PlanContext, Planning, Task, defaults, image_size, weights};
use crate::batch::{Batch, QUAD};
use crate::dataset::DataSet;
use crate::error::PlanError;
use crate::hyp::HyperParameters;
use crate::model::{MIN_STRIDE, ModelSpec};
use crate::options::{Balance, Cache, Optimizer, Parallel, TrainOptions, Workers};
use crate::precision::Precision;

/// YOLOv5's default patience.
const PATIENCE: usize = 100;
/// With at most this many images per rank and step, statistics of batch normalization are noisy.
const FEW_IMAGES: usize = 8;
/// The smallest image side, in strides (spec §6).
const MIN_SIDE_IN_STRIDES: usize = 2;

/// A training run. `opt.yaml` has these fields as well, see [`opt_yaml()`](super::opt_yaml()).
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
    #[serde(default)]
    pub parallel: Parallel,
    /// Images per step of each rank; empty if the shares are equal.
    #[serde(default)]
    pub batch_split: Vec<usize>,
    #[serde(default)]
    pub balance: Option<Balance>,
    pub nominal_batch: usize,
    /// Side of the square network input in pixels, a multiple of the largest stride.
    pub image_size: usize,
    pub rect: bool,
    #[serde(default)]
    pub multi_scale: bool,
    #[serde(default)]
    pub image_weights: bool,
    #[serde(default)]
    pub quad: bool,
    #[serde(default)]
    pub precision: Precision,
    /// Whether libtorch may use algorithms whose results vary from run to run.
    #[serde(default)]
    pub nondeterministic: bool,
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
    /// How many times a failed run is started again.
    #[serde(default)]
    pub max_restarts: u32,
    /// Whether the run is a generation of `--evolve`: its metrics count, and it leaves no weights.
    #[serde(default)]
    pub evolve: bool,
    /// Whether rank 0 writes event files for TensorBoard.
    #[serde(default)]
    pub tensorboard: bool,
}

impl TrainTask {
    /// How many images become one in the network, which `--quad` decides: a share of the batch is a multiple of it.
    pub fn images_as_one(&self) -> usize {
        if self.quad { QUAD } else { 1 }
    }

    /// Images per step of each of `ranks` ranks.
    pub fn shares(&self, ranks: usize) -> Vec<usize> {
        shares(self.batch, &self.batch_split, ranks)
    }
}

/// Images per step of each of `ranks` ranks; `split` is empty if they are equal.
fn shares(batch: usize, split: &[usize], ranks: usize) -> Vec<usize> {
    if split.len() == ranks { split.to_vec() } else { vec![batch / ranks; ranks] }
}

/// Plans a training run.
///
/// # Errors
/// The first mistake in the options, or in a file that they name.
pub fn plan_train(options: &TrainOptions, context: &PlanContext) -> Result<Planning, PlanError> {
    if let Some(checkpoint) = &options.resume {
        return match plan_resume(checkpoint, options, context)? {
            Resumed::OfYolo(planned) => Ok(Planning::Ready(planned)),
            Resumed::OfYolov5(run, notes) => {
                let planning = plan_train(&run.options, context);
                run.continued(planning, notes)
            }
        };
    }
    // Mistakes that the options alone show are reported before anything is fetched.
    let checked = Checked::new(options, context)?;

    let mut missing = Vec::new();
    need_data_set(checked.data, context, &mut missing)?;
    let weights = match checked.effective.weights {
        "" => None,
        argument => weights::find(argument, context, &mut missing)?,
    };
    if !missing.is_empty() {
        return Ok(Planning::Missing(missing));
    }

    let PlanContext { inventory, places, .. } = context;
    let (data, mut warnings) = DataSet::load_for_run(checked.data, options.single_cls, places)?;
    let model = model(&checked.effective, data.names.len(), &checked.hyp, places)?;
    let stride = largest_stride(model.as_ref(), weights.as_deref())?;
    let image_size =
        image_size::rounded(checked.image_size, stride, MIN_SIDE_IN_STRIDES * stride, &mut warnings);
    let mut notes = checked.notes;
    notes.extend(checked.batch.note.clone());
    let ranks = checked.ranks;
    if checked.parallel == Parallel::Model
        && let Some(model) = &model
    {
        model.check_parts(ranks.all_devices().len())?;
    }
    if options.sync_bn && ranks.world_size == 1 {
        warnings.push("--sync-bn has no effect on a single rank".to_owned());
    }
    if checked.hyp.anchors.is_some() && options.noautoanchor {
        warnings.push(
            "`anchors` in the hyperparameters gives the model placeholders, which --noautoanchor leaves as they are; omit \
             --noautoanchor to fit them to the labels"
                .to_owned(),
        );
    }
    if options.rect && options.image_weights {
        warnings
            .push("--rect has no effect with --image-weights, which draws the images of a batch".to_owned());
    }
    if options.balance.is_some() && ranks.world_size == 1 {
        warnings.push("--balance has no effect on a single rank".to_owned());
    }
    let Batch { total: batch, split: batch_split, note: _ } = checked.batch;
    let shares = shares(batch, &batch_split, ranks.world_size);
    let largest = shares.iter().copied().max().unwrap_or(batch);
    notes.extend(sync_bn_advice(options.sync_bn, &shares));

    let task = TrainTask {
        data,
        image_size,
        weights,
        model,
        batch,
        batch_split,
        parallel: checked.parallel,
        balance: options.balance.filter(|_| ranks.world_size > 1),
        workers: ranks.workers(options.workers.map(Workers::most), largest, inventory.cores),
        hyp: checked.hyp,
        epochs: checked.epochs,
        nominal_batch: checked.nominal_batch,
        optimizer: options.optimizer.unwrap_or(defaults::of(checked.data).optimizer),
        sync_bn: options.sync_bn,
        seed: options.seed.unwrap_or(0),
        nosave: options.nosave,
        noval: options.noval,
        autoanchor: !options.noautoanchor,
        plots: !options.noplots,
        freeze: checked.freeze,
        cos_lr: options.cos_lr,
        label_smoothing: checked.label_smoothing,
        patience: Some(options.patience.unwrap_or(PATIENCE)).filter(|epochs| *epochs > 0),
        save_period: options
            .save_period
            .and_then(|epochs| usize::try_from(epochs).ok())
            .filter(|epochs| *epochs > 0),
        single_cls: options.single_cls,
        rect: options.rect && !options.image_weights,
        multi_scale: options.multi_scale,
        image_weights: options.image_weights,
        quad: options.quad,
        precision: checked.precision,
        nondeterministic: options.nondeterministic,
        cache: options.cache,
        resume: None,
        max_restarts: options.max_restarts.unwrap_or(0),
        evolve: false,
        tensorboard: options.tensorboard,
    };
    Ok(Planning::ready(ranks, checked.run_dir, Task::Train(Box::new(task)), warnings, notes))
}

/// Advice for ranks of which some have a share of the batch that is too small for statistics of their own. `shares`
/// are the images of each per step.
pub(super) fn sync_bn_advice(sync_bn: bool, shares: &[usize]) -> Option<String> {
    let fewest = *shares.iter().min()?;
    if sync_bn || shares.len() < 2 || fewest > FEW_IMAGES {
        return None;
    }
    let over = if shares.iter().all(|share| *share == fewest) {
        format!("each rank normalizes over {} a step, which is few", count(fewest, "image"))
    } else {
        let each: Vec<String> = shares.iter().map(usize::to_string).collect();
        format!("the ranks normalize over {} images a step, and {fewest} is few", list(&each))
    };
    Some(format!("{over}: consider --sync-bn, which normalizes over the images of all ranks"))
}

/// The largest stride of the model, or of the weights that describe it.
fn largest_stride(model: Option<&ModelSpec>, weights: Option<&Path>) -> Result<usize, PlanError> {
    match (model, weights) {
        (Some(model), _) => model.largest_stride(),
        (None, Some(path)) => Ok(weights::largest_stride(path)),
        (None, None) => Ok(MIN_STRIDE),
    }
}

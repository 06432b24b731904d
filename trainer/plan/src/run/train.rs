//! The task and the plan of `yolo train`: applies defaults, checks each option, finds files, and
//! derives the ranks, the batch, the image size and the run folder.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::defaults::{self, Defaults};
use super::{
    EffectiveOptions, PlanContext, Planned, Planning, Ranks, RunPlan, Task, folder, image_size, need, weights,
};
use crate::backend::Backend;
use crate::batch;
use crate::dataset::{DataSet, Places};
use crate::device;
use crate::error::PlanError;
use crate::hyp::HyperParameters;
use crate::model::{MIN_STRIDE, ModelSpec};
use crate::options::{Cache, Optimizer, TrainOptions};

/// YOLOv5's default patience.
const PATIENCE: usize = 100;
/// More epochs than this are a typo.
const MAX_EPOCHS: usize = 1_000_000;
/// A larger nominal batch is a typo.
const MAX_NOMINAL_BATCH: usize = 1 << 20;
/// The smallest factor of strides that an image side may have (spec §6).
const MIN_STRIDES: usize = 2;

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

/// Plans a training run.
///
/// # Errors
/// The first mistake in the options, or in a file that they name.
pub fn plan_train(options: &TrainOptions, context: &PlanContext) -> Result<Planning, PlanError> {
    if let Some(checkpoint) = &options.resume {
        let planned = super::plan_resume(Some(Path::new(checkpoint)), &context.places)?;
        return Ok(Planning::Ready(Box::new(planned)));
    }
    let PlanContext { inventory, places, .. } = context;
    let data_argument = options.data.as_deref().unwrap_or(defaults::DATA);
    let defaults = defaults::of(data_argument);
    let effective = EffectiveOptions::of(options);

    // Mistakes that the options alone show are reported before anything is fetched.
    let choice = device::choose(options.device.as_deref(), options.nproc_per_node, inventory)?;
    Backend::check(&choice.devices)?;
    let batch = batch::check(effective.batch, choice.devices.len())?;
    let epochs = positive("--epochs", effective.epochs, MAX_EPOCHS)?;
    let nominal_batch = positive("--nbs", options.nbs.unwrap_or(defaults.nbs), MAX_NOMINAL_BATCH)?;
    let image_size = image_size::check(effective.image_size)?;
    let label_smoothing = label_smoothing(options)?;
    let hyp = hyperparameters(options, defaults, places)?;
    has_model(&effective)?;
    let run_dir = folder::of_run(
        options.project.as_deref().unwrap_or(Path::new("runs/train")),
        options.name.as_deref(),
        options.exist_ok,
        places,
    )?;

    let mut missing = Vec::new();
    need::data_set(data_argument, context, &mut missing)?;
    let weights = match effective.weights {
        "" => None,
        argument => weights::find(argument, context, &mut missing)?,
    };
    if !missing.is_empty() {
        return Ok(Planning::Missing(missing));
    }

    let (data, mut warnings) = DataSet::load_for_run(data_argument, options.single_cls, places)?;
    let model = model(&effective, &data, &hyp, places)?;
    let stride = largest_stride(model.as_ref(), weights.as_deref())?;
    let image_size = image_size::rounded(image_size, stride, MIN_STRIDES * stride, &mut warnings);
    let freeze = freeze(&options.freeze, model.as_ref(), &mut warnings)?;
    let ranks = Ranks::new(choice.devices, inventory.cores);
    if options.sync_bn && ranks.world_size == 1 {
        warnings.push("--sync-bn has no effect on a single rank".to_owned());
    }
    let workers = ranks.workers(options.workers, batch, inventory.cores);

    let task = TrainTask {
        data,
        image_size,
        batch,
        workers,
        weights,
        model,
        hyp,
        epochs,
        nominal_batch,
        optimizer: options.optimizer.unwrap_or(defaults.optimizer),
        sync_bn: options.sync_bn,
        seed: options.seed.unwrap_or(0),
        nosave: options.nosave,
        noval: options.noval,
        autoanchor: !options.noautoanchor,
        plots: !options.noplots,
        freeze,
        cos_lr: options.cos_lr,
        label_smoothing,
        patience: Some(options.patience.unwrap_or(PATIENCE)).filter(|epochs| *epochs > 0),
        save_period: options
            .save_period
            .and_then(|epochs| usize::try_from(epochs).ok())
            .filter(|epochs| *epochs > 0),
        single_cls: options.single_cls,
        rect: options.rect,
        cache: options.cache,
        resume: None,
    };
    let plan = RunPlan::new(ranks, run_dir, Task::Train(Box::new(task)));
    let notes = choice.note.into_iter().collect();
    Ok(Planning::Ready(Box::new(Planned { plan, warnings, notes })))
}

fn label_smoothing(options: &TrainOptions) -> Result<f64, PlanError> {
    let epsilon = options.label_smoothing.unwrap_or(0.0);
    if !(0.0..1.0).contains(&epsilon) {
        return Err(PlanError::new(format!(
            "--label-smoothing {epsilon} is not a number from 0 up to, but not including, 1"
        )));
    }
    Ok(epsilon)
}

/// The file or the built-in set that `--hyp` names, or the default of the data set.
fn hyperparameters(
    options: &TrainOptions,
    defaults: &Defaults,
    places: &Places,
) -> Result<HyperParameters, PlanError> {
    match options.hyp.as_deref().filter(|argument| !argument.is_empty()) {
        Some(argument) => HyperParameters::load(&file_or_name(argument, places)),
        None => Ok((defaults.hyp)()),
    }
}

/// Weights or a YAML must describe the model.
fn has_model(effective: &EffectiveOptions<'_>) -> Result<(), PlanError> {
    if effective.weights.is_empty() && effective.cfg.is_empty() {
        return Err(PlanError::new("--weights and --cfg are both empty, so there is no model to train")
            .with_hint(
                "start from weights (--weights yolov5n.pt), or from scratch (--weights '' --cfg yolov5n)",
            ));
    }
    Ok(())
}

/// The model of `--cfg`, if it is given.
fn model(
    effective: &EffectiveOptions<'_>,
    data: &DataSet,
    hyp: &HyperParameters,
    places: &Places,
) -> Result<Option<ModelSpec>, PlanError> {
    match effective.cfg {
        "" => Ok(None),
        cfg => ModelSpec::load(&file_or_name(cfg, places), data.names.len(), hyp.anchors).map(Some),
    }
}

/// The largest stride of the model, or of the weights that describe it.
fn largest_stride(model: Option<&ModelSpec>, weights: Option<&Path>) -> Result<usize, PlanError> {
    match (model, weights) {
        (Some(model), _) => model.largest_stride(),
        (None, Some(path)) => Ok(weights::largest_stride(path)),
        (None, None) => Ok(MIN_STRIDE),
    }
}

/// The full path of a file in the working folder; anything else stays as it is.
fn file_or_name(argument: &str, places: &Places) -> String {
    let path = places.working_dir.join(argument);
    if path.is_file() { path.to_string_lossy().into_owned() } else { argument.to_owned() }
}

fn positive(option: &str, value: usize, max: usize) -> Result<usize, PlanError> {
    if value == 0 || value > max {
        return Err(PlanError::new(format!("{option} {value} is not a number from 1 to {max}")));
    }
    Ok(value)
}

/// `--freeze 10` means the first ten layers, `--freeze 0 1 9` those three (spec §6).
fn freeze(
    option: &[usize],
    model: Option<&ModelSpec>,
    warnings: &mut Vec<String>,
) -> Result<Vec<usize>, PlanError> {
    /// More layers than any model has, so that a typo does not become a huge list.
    const MAX_LAYERS: usize = 1000;
    if let Some(layer) = option.iter().find(|layer| **layer > MAX_LAYERS) {
        return Err(PlanError::new(format!("--freeze {layer} is beyond the last layer of every model")));
    }
    let mut layers: Vec<usize> = match option {
        [count] => (0..*count).collect(),
        list => list.to_vec(),
    };
    layers.sort_unstable();
    layers.dedup();
    let Some(count) = model.map(|model| model.layers.len()) else {
        return Ok(layers);
    };
    let beyond: Vec<String> = layers.iter().filter(|layer| **layer >= count).map(usize::to_string).collect();
    if !beyond.is_empty() {
        warnings.push(format!(
            "--freeze names layers that the model does not have ({}): its last layer is {}",
            beyond.join(", "),
            count - 1
        ));
    }
    layers.retain(|layer| *layer < count);
    if layers.len() == count {
        return Err(PlanError::new(format!(
            "--freeze freezes all {count} layers, so nothing would be trained"
        )));
    }
    Ok(layers)
}

//! The plan of `yolo train`: applies defaults, checks each option, finds files, and derives the ranks,
//! the batch, the image size and the run folder.

use std::path::Path;

use super::weights::{self, Weights};
use super::{
    EffectiveOptions, PLAN_VERSION, PlanContext, Planned, Planning, RunPlan, Task, TrainTask, defaults,
    folder, need,
};
use crate::batch;
use crate::dataset::{DataSet, Places};
use crate::device;
use crate::error::PlanError;
use crate::hyp::HyperParameters;
use crate::model::ModelSpec;
use crate::options::TrainOptions;

/// YOLOv5's default patience.
const PATIENCE: usize = 100;
/// More epochs than this are a typo.
const MAX_EPOCHS: usize = 1_000_000;
/// The smallest factor of strides that an image side may have (spec §6).
const MIN_STRIDES: usize = 2;
/// Strides below this are treated as this one (spec §6).
const MIN_STRIDE: usize = 32;

/// Plans a training run. A built-in data set must exist already.
///
/// # Errors
/// The first mistake in the options, or in a file that they name.
pub fn plan_train(options: &TrainOptions, context: &PlanContext) -> Result<Planning, PlanError> {
    if let Some(checkpoint) = &options.resume {
        let planned = super::plan_resume(Some(Path::new(checkpoint)), &context.places)?;
        return Ok(Planning::Ready(Box::new(planned)));
    }
    let PlanContext { inventory, places, .. } = context;
    let mut warnings = Vec::new();
    let data_argument = options.data.as_deref().unwrap_or(defaults::DATA);
    let defaults = defaults::of(data_argument);
    let effective = EffectiveOptions::of(options);

    let choice = device::choose(options.device.as_deref(), options.nproc_per_node, inventory)?;
    let batch = batch::check(effective.batch, choice.devices.len())?;
    let epochs = positive("--epochs", effective.epochs, MAX_EPOCHS)?;
    let nominal_batch = positive("--nbs", options.nbs.unwrap_or(defaults.nbs), 1 << 20)?;
    let label_smoothing = options.label_smoothing.unwrap_or(0.0);
    if !(0.0..1.0).contains(&label_smoothing) {
        return Err(PlanError::new(format!(
            "--label-smoothing {label_smoothing} is not a number from 0 up to, but not including, 1"
        )));
    }
    let hyp = match options.hyp.as_deref().filter(|hyp| !hyp.is_empty()) {
        Some(word) => HyperParameters::load(&file_or_name(word, places))?,
        None => (defaults.hyp)(),
    };

    let (weights, cfg) = (effective.weights, effective.cfg);
    if weights.is_empty() && cfg.is_empty() {
        return Err(PlanError::new("--weights and --cfg are both empty, so there is no model to train")
            .with_hint(
                "start from weights (--weights yolov5n.pt), or from scratch (--weights '' --cfg yolov5n)",
            ));
    }
    let mut missing: Vec<_> = need::data_set(data_argument, places)?.into_iter().collect();
    let weights = match weights {
        "" => None,
        argument => match weights::find(argument, context)? {
            Weights::File(path) => Some(path),
            Weights::Missing(need) => {
                missing.push(need);
                None
            }
        },
    };
    if !missing.is_empty() {
        return Ok(Planning::Missing(missing));
    }

    let (mut data, data_warnings) = DataSet::load_with_warnings(data_argument, places)?;
    warnings.extend(data_warnings);
    if options.single_cls {
        super::merge_classes(&mut data);
    }

    let model = match cfg {
        "" => None,
        cfg => Some(ModelSpec::load(&file_or_name(cfg, places), data.names.len(), hyp.anchors)?),
    };
    let stride = match (&model, &weights) {
        (Some(model), _) => model.strides()?.into_iter().fold(0.0, f64::max).ceil() as usize,
        (None, Some(path)) => weights::stride(path),
        (None, None) => MIN_STRIDE,
    }
    .max(MIN_STRIDE);
    let image_size = super::image_size(effective.image_size, stride, MIN_STRIDES * stride, &mut warnings)?;
    let freeze = freeze(&options.freeze, model.as_ref(), &mut warnings)?;

    let ranks = super::ranks(choice.devices, inventory);
    if options.sync_bn && ranks.world_size == 1 {
        warnings.push("--sync-bn has no effect on a single rank".to_owned());
    }
    let workers = super::workers(options.workers, &ranks, batch, inventory);
    let project = options.project.as_deref().unwrap_or(Path::new("runs/train"));
    let name = options.name.as_deref().unwrap_or("exp");
    let run_dir = folder::increment(&places.working_dir.join(project), name, options.exist_ok)?;

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
    let plan = RunPlan {
        version: PLAN_VERSION,
        program: super::program(),
        ranks,
        run_dir,
        task: Task::Train(Box::new(task)),
    };
    let notes = choice.note.into_iter().collect();
    Ok(Planning::Ready(Box::new(Planned { plan, warnings, notes })))
}

/// The full path of a file in the working folder; anything else stays as it is.
pub(super) fn file_or_name(word: &str, places: &Places) -> String {
    let path = places.working_dir.join(word);
    if path.is_file() { path.to_string_lossy().into_owned() } else { word.to_owned() }
}

fn positive(option: &str, value: usize, max: usize) -> Result<usize, PlanError> {
    if value == 0 || value > max {
        return Err(PlanError::new(format!("{option} {value} is not a number from 1 to {max}")));
    }
    Ok(value)
}

/// `--freeze 10` means the first ten layers, `--freeze 0 1 9` those three (spec §6).
fn freeze(
    given: &[usize],
    model: Option<&ModelSpec>,
    warnings: &mut Vec<String>,
) -> Result<Vec<usize>, PlanError> {
    /// More layers than any model has, so that a typo does not become a huge list.
    const MAX_LAYERS: usize = 1000;
    if let Some(layer) = given.iter().find(|layer| **layer > MAX_LAYERS) {
        return Err(PlanError::new(format!("--freeze {layer} is beyond the last layer of every model")));
    }
    let mut layers: Vec<usize> = match given {
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

//! The task and the plan of `yolo train`: applies defaults, checks each option, finds files, and
//! derives the ranks, the batch, the image size and the run folder.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use yolo_base::format::{count, list};

use super::defaults::{self, Defaults};
use super::planning::{self, need_data_set};
use super::resume::{Resumed, plan_resume};
use super::{EffectiveOptions, PlanContext, Planning, Ranks, Task, folder, image_size, one_process, weights};
use crate::auto_batch;
use crate::backend::{Connection, Reach};
use crate::batch::{self, Batch, QUAD};
use crate::dataset::{DataSet, Places};
use crate::device::{self, Choice, Device, Inventory};
use crate::error::PlanError;
use crate::hyp::HyperParameters;
use crate::model::{MIN_STRIDE, ModelSpec};
use crate::options::{Balance, Cache, Optimizer, Parallel, TrainOptions, Workers};
use crate::precision::Precision;

/// YOLOv5's default patience.
const PATIENCE: usize = 100;
/// More epochs than this are a typo.
pub(super) const MAX_EPOCHS: usize = 1_000_000;
/// With at most this many images per rank and step, statistics of batch normalization are noisy.
const FEW_IMAGES: usize = 8;
/// A larger nominal batch is a typo.
pub(super) const MAX_NOMINAL_BATCH: usize = 1 << 20;
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

/// What the options decide without the data set and the weights.
struct Checked<'a> {
    data: &'a str,
    effective: EffectiveOptions<'a>,
    parallel: Parallel,
    precision: Precision,
    ranks: Ranks,
    /// What was chosen for the ranks and why.
    notes: Vec<String>,
    batch: Batch,
    epochs: usize,
    nominal_batch: usize,
    image_size: usize,
    label_smoothing: f64,
    hyp: HyperParameters,
    freeze: Vec<usize>,
    run_dir: PathBuf,
}

impl<'a> Checked<'a> {
    fn new(options: &'a TrainOptions, context: &PlanContext) -> Result<Self, PlanError> {
        let PlanContext { inventory, places, .. } = context;
        let data = options.data.as_deref().unwrap_or(defaults::DATA);
        let defaults = defaults::of(data);
        let effective = EffectiveOptions::of(options);
        let parallel = options.parallel.unwrap_or_default();
        let (ranks, notes) = ranks(parallel, options, context)?;
        let precision = Precision::choose(options.precision.unwrap_or_default(), &ranks.all_devices())?;
        let parts = one_process::parts(parallel, &ranks).unwrap_or(ranks.world_size);
        let batch = match effective.batch {
            auto_batch::AUTO => auto_batch(parallel, options, &ranks, context)?,
            images => batch(parallel, images, options, &ranks, inventory)?,
        };
        if options.quad {
            batch.check_quads(parts)?;
        }
        let epochs = positive("--epochs", effective.epochs, MAX_EPOCHS)?;
        let nominal_batch = positive("--nbs", options.nbs.unwrap_or(defaults.nbs), MAX_NOMINAL_BATCH)?;
        let image_size = image_size::check(effective.image_size)?;
        let label_smoothing = label_smoothing(options)?;
        let hyp = hyperparameters(options, defaults, places)?;
        has_model(&effective)?;
        // The data set decides the number of classes, but not the layers.
        let layers = model(&effective, 1, &hyp, places)?.map(|model| model.layers.len());
        let freeze = freeze(&options.freeze, layers)?;
        let run_dir = folder::of_run(
            options.project.as_deref().unwrap_or(Path::new("runs/train")),
            options.name.as_deref(),
            options.exist_ok,
            places,
        )?;
        Ok(Self {
            data,
            effective,
            parallel,
            precision,
            ranks,
            notes,
            batch,
            epochs,
            nominal_batch,
            image_size,
            label_smoothing,
            hyp,
            freeze,
            run_dir,
        })
    }
}

/// The ranks that the options name, and what was chosen automatically.
fn ranks(
    parallel: Parallel,
    options: &TrainOptions,
    context: &PlanContext,
) -> Result<(Ranks, Vec<String>), PlanError> {
    let PlanContext { inventory, places, part, .. } = context;
    if parallel.is_one_process() {
        one_process::check_options(parallel, options, *part)?;
        let Choice { devices, note } = device::choose(options.device.as_deref(), None, inventory)?;
        return Ok((one_process::ranks(parallel, &devices, inventory)?, note.into_iter().collect()));
    }
    let choice = device::choose(options.device.as_deref(), options.nproc_per_node, inventory)?;
    let nccl = options.nccl.as_deref().map(|file| planning::nccl_library(file, places)).transpose()?;
    let wanted = options.backend.unwrap_or_default();
    let reach = part.map_or(Reach::Plan, |part| part.reach(choice.devices.len()));
    let connection = Connection::choose_for(reach, wanted, nccl, &choice.devices, inventory)?;
    let notes = choice.note.into_iter().chain(connection.notes.clone()).collect();
    Ok((Ranks::new(choice.devices, connection, *part, inventory), notes))
}

/// The batch, divided among the ranks, or checked against the replicas of a single one.
fn batch(
    parallel: Parallel,
    images: i64,
    options: &TrainOptions,
    ranks: &Ranks,
    inventory: &Inventory,
) -> Result<Batch, PlanError> {
    let undivided = |total| Ok(Batch { total, split: Vec::new(), note: None });
    match parallel {
        Parallel::Ddp => {
            let given = options.batch_size.is_some();
            let split = options.batch_split.as_deref();
            batch::divide(images, given, split, (ranks.world_size, &ranks.devices), inventory)
        }
        Parallel::Dp => undivided(batch::check_replicas(images, ranks.all_devices().len())?),
        Parallel::Model => undivided(batch::check(images, 1)?),
    }
}

/// The batch of `--batch -1`: what was measured, or until then the number for the CPU, on which nothing is measured.
fn auto_batch(
    parallel: Parallel,
    options: &TrainOptions,
    ranks: &Ranks,
    context: &PlanContext,
) -> Result<Batch, PlanError> {
    if context.part.is_some() {
        return Err(batch::auto_only_on_one_machine("with --nnodes or in `yolo rank`"));
    }
    batch::check_auto(options.batch_split.is_some(), parallel == Parallel::Model)?;
    let unit = if options.quad { QUAD } else { 1 };
    let (devices, split) = (ranks.all_devices(), Vec::new());
    let (total, note) = match context.measured_batch {
        Some(total) => (total, None),
        None if devices.iter().all(|device| *device == Device::Cpu) => {
            let (total, note) = auto_batch::without_measurement(devices.len(), unit);
            (total, Some(note))
        }
        None => (auto_batch::WITHOUT_MEASUREMENT * devices.len(), None),
    };
    Ok(Batch { total, split, note })
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

pub(super) fn label_smoothing(options: &TrainOptions) -> Result<f64, PlanError> {
    let epsilon = options.label_smoothing.unwrap_or(0.0);
    if !(0.0..1.0).contains(&epsilon) {
        return Err(PlanError::usage(format!(
            "--label-smoothing {epsilon} is not a number from 0 up to, but not including, 1"
        ))
        .with_hint("0.1 is usual; omit it for none"));
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
pub(super) fn has_model(effective: &EffectiveOptions<'_>) -> Result<(), PlanError> {
    if effective.weights.is_empty() && effective.cfg.is_empty() {
        return Err(PlanError::usage("--weights and --cfg are both empty, so there is no model to train")
            .with_hint(
                "start from weights (--weights yolov5n.pt), or from scratch (--weights '' --cfg yolov5n)",
            ));
    }
    Ok(())
}

/// The model of `--cfg`, if it is given.
fn model(
    effective: &EffectiveOptions<'_>,
    classes: usize,
    hyp: &HyperParameters,
    places: &Places,
) -> Result<Option<ModelSpec>, PlanError> {
    match effective.cfg {
        "" => Ok(None),
        cfg => ModelSpec::load(&file_or_name(cfg, places), classes, hyp.anchors).map(Some),
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

/// `value`, if it is from 1 to `max`.
pub(super) fn positive(option: &str, value: usize, max: usize) -> Result<usize, PlanError> {
    if value == 0 || value > max {
        return Err(PlanError::usage(format!("{option} {value} is not a number from 1 to {max}"))
            .with_hint(format!("give such a number, or omit {option} for its default")));
    }
    Ok(value)
}

/// The layers of `--freeze`: `--freeze 10` means the first ten, `--freeze 0 1 9` those
/// three (spec §6). `count` is the number of layers, if a YAML describes the model.
fn freeze(option: &[usize], count: Option<usize>) -> Result<Vec<usize>, PlanError> {
    /// More layers than any model has, so that a typo does not become a huge list.
    const MAX_LAYERS: usize = 1000;
    if let Some(layer) = option.iter().find(|layer| **layer > MAX_LAYERS) {
        return Err(PlanError::usage(format!("--freeze {layer} is beyond the last layer of any model"))
            .with_hint("--freeze 10 freezes the first ten layers, which are the backbone"));
    }
    let mut layers: Vec<usize> = match option {
        [count] => (0..*count).collect(),
        list => list.to_vec(),
    };
    layers.sort_unstable();
    layers.dedup();
    if let Some(count) = count {
        check_freeze(&layers, count)?;
    }
    Ok(layers)
}

/// Whether layers that are to be frozen fit a model of `count` layers. The plan knows a model that options name, and
/// the trainer that of weights.
///
/// # Errors
/// When no layer is left to train, or one does not exist.
pub fn check_freeze(layers: &[usize], count: usize) -> Result<(), PlanError> {
    if (0..count).all(|layer| layers.contains(&layer)) {
        return Err(PlanError::usage(format!(
            "--freeze freezes all {count} layers, so nothing would be trained"
        ))
        .with_hint("--freeze 10 freezes the first ten layers, which are the backbone"));
    }
    if let Some(beyond) = layers.iter().find(|layer| **layer >= count) {
        return Err(PlanError::usage(format!(
            "--freeze {beyond}: the last layer of the model is {}",
            count - 1
        ))
        .with_hint("--freeze 10 freezes the first ten layers; --freeze 0 1 2 freezes these three"));
    }
    Ok(())
}

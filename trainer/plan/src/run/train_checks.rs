//! What the options of a training run decide without the data set and the weights: ranks, batch, hyperparameters,
//! numbers and the run folder. Mistakes in them are reported before anything is fetched.

use std::path::{Path, PathBuf};

use super::defaults::{self, Defaults};
use super::{EffectiveOptions, PlanContext, Ranks, folder, image_size, one_process, planning};
use crate::auto_batch;
use crate::backend::{Connection, Reach};
use crate::batch::{self, Batch, QUAD};
use crate::dataset::Places;
use crate::device::{self, Choice, Device, Inventory};
use crate::error::PlanError;
use crate::hyp::HyperParameters;
use crate::model::ModelSpec;
use crate::options::{Parallel, TrainOptions};
use crate::precision::Precision;

/// More epochs than this are a typo.
pub(super) const MAX_EPOCHS: usize = 1_000_000;
/// A larger nominal batch is a typo.
pub(super) const MAX_NOMINAL_BATCH: usize = 1 << 20;

/// What the options decide without the data set and the weights.
pub(super) struct Checked<'a> {
    pub(super) data: &'a str,
    pub(super) effective: EffectiveOptions<'a>,
    pub(super) parallel: Parallel,
    pub(super) precision: Precision,
    pub(super) ranks: Ranks,
    /// What was chosen for the ranks and why.
    pub(super) notes: Vec<String>,
    pub(super) batch: Batch,
    pub(super) epochs: usize,
    pub(super) nominal_batch: usize,
    pub(super) image_size: usize,
    pub(super) label_smoothing: f64,
    pub(super) hyp: HyperParameters,
    pub(super) freeze: Vec<usize>,
    pub(super) run_dir: PathBuf,
}

impl<'a> Checked<'a> {
    /// Checks the options.
    pub(super) fn new(options: &'a TrainOptions, context: &PlanContext) -> Result<Self, PlanError> {
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
pub(super) fn model(
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

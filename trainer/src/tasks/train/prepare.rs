//! Everything before the first step, in the order of the specification (spec §6): data, model and
//! weights, frozen layers, anchors, optimizer, moving average, rounding of the weights, and the
//! exchange with the other ranks.

use std::path::PathBuf;
use std::sync::Arc;

use torch_checkpoint::WeightsFile;
use yolo_base::format::count;
use yolo_data::loader::{self, LoaderSettings, TrainLoader, ValLoader};
use yolo_data::scan::{Sample, Scan, ScanOptions, scan};
use yolo_plan::RunPlan;
use yolo_plan::run::TrainTask;
use yolo_plan::schedule::{Schedule, scaled_weight_decay};

use super::early_stopping::EarlyStopping;
use super::meter::Rate;
use super::training::Training;
use crate::autoanchor;
use crate::checkpoint::{Progress, Resume, read_resume};
use crate::error::TrainError;
use crate::learner::{Ema, Learner, Optimizer};
use crate::loss::LossSettings;
use crate::model::{Model, Transfer};
use crate::rank::context::Context;
use crate::report::{ResultsFile, plot_labels, write_hyp_and_opt};
use crate::tasks::val::Split;

/// Padding of rectangular validation batches, in strides (spec §7).
const VAL_PAD: f64 = 0.5;

/// Prepares the training of the plan.
pub(super) fn prepare<'a>(
    context: &'a Context,
    plan: &'a RunPlan,
    task: &'a TrainTask,
) -> Result<Training<'a>, TrainError> {
    // Weights are read first: a broken file is reported before a large data set is scanned.
    let resume = task.resume.as_deref().map(read_resume).transpose()?;
    let weights = match &resume {
        None => task.weights.as_deref().map(torch_checkpoint::read).transpose()?,
        Some(_) => None,
    };
    let progress = resume.as_ref().map_or(Progress::START, |resume| resume.progress);
    context.reporter.phase("reading labels");
    let samples: Arc<[Sample]> = read_split(context, task, "train", &task.data.train)?.samples.into();

    context.reporter.phase("building the model");
    let model = build_model(context, task, weights.as_ref(), resume.as_ref())?;
    // The plan checks this itself if it has the model and not only weights.
    if model.freeze(&task.freeze)?.len() == model.state().parameters().count() {
        return Err(TrainError::new("--freeze freezes all layers, so nothing would be trained")
            .with_hint(format!("the last layer of this model is {}", model.spec().layers.len() - 1)));
    }
    let stride = model.largest_stride();
    let mut loader = train_loader(context, plan, task, Arc::clone(&samples), stride)?;
    // The loader's threads work on the first batches while this thread prepares the rest.
    loader.prefetch(progress.epochs_done as u64, progress.batches_done);
    if resume.is_none() && task.autoanchor {
        fit_anchors(context, task, &model, &samples)?;
    }
    let learner = build_learner(context, task, model, resume.as_ref())?;
    loader.take_warnings().into_iter().for_each(|message| context.reporter.warning(message));

    let (batches, batch, nominal) = (loader.batches_per_epoch(), task.batch, task.nominal_batch);
    let schedule = Schedule::new(&task.hyp, task.epochs, batches, batch, nominal, task.cos_lr);
    let (mut val, mut results) = (None, None);
    if context.is_main() {
        val = Some(open_val(context, plan, task, stride)?);
        write_hyp_and_opt(plan, task)?;
        if task.plots {
            plot_labels(&samples, &task.data.names, &plan.run_dir.join("labels.svg"))?;
        }
        results = Some(ResultsFile::open(&plan.run_dir, progress.epochs_done)?);
    }
    let stopping = match progress.epochs_done {
        0 => EarlyStopping::new(task.patience),
        _ => EarlyStopping::resume(task.patience, progress.best_fitness, progress.best_epoch),
    };
    let (loader, rate) = (Some(loader), Rate::default());
    Ok(Training { context, plan, task, learner, schedule, loader, val, results, stopping, progress, rate })
}

/// The loader of this rank's share of the training split.
fn train_loader(
    context: &Context,
    plan: &RunPlan,
    task: &TrainTask,
    samples: Arc<[Sample]>,
    stride: usize,
) -> Result<TrainLoader, TrainError> {
    let settings = LoaderSettings {
        image_size: task.image_size,
        stride,
        batch_per_rank: plan.ranks.share(task.batch),
        rank: context.rank,
        world: context.world,
        seed: task.seed,
        workers: task.workers,
        rect: task.rect,
        cache: task.cache,
        augment: (&task.hyp).into(),
    };
    Ok(TrainLoader::new(samples, settings)?)
}

/// Model, loss, optimizer and moving average, new or as the checkpoint has them.
fn build_learner(
    context: &Context,
    task: &TrainTask,
    model: Model,
    resume: Option<&Resume>,
) -> Result<Learner, TrainError> {
    let decay = scaled_weight_decay(task.hyp.weight_decay, task.nominal_batch, task.batch);
    let (lr, momentum) = (task.hyp.lr0, task.hyp.momentum);
    let mut optimizer = Optimizer::new(task.optimizer, model.state(), lr, momentum, decay)?;
    // The average starts from the weights before they are rounded (spec §6).
    let mut ema = if context.is_main() { Some(Ema::new(&model)?) } else { None };
    if let Some(resume) = resume {
        optimizer.load_state_dict(&resume.optimizer)?;
        if let Some(ema) = &mut ema {
            ema.restore(&resume.averaged, resume.updates)?;
        }
    } else {
        model.round_to_half()?;
    }
    let settings = LossSettings::of_task(task, model.strides().len());
    let group = context.group.as_ref();
    if group.is_some() {
        context.reporter.phase("sharing the first weights");
    }
    let mut learner = Learner::new(model, optimizer, ema, settings, group, task.sync_bn)?;
    if let Some(gradients) = resume.and_then(|resume| resume.gradients.as_ref()) {
        learner.restore_gradients(gradients)?;
    }
    Ok(learner)
}

/// Reads and verifies the labels of a split. For the training split, rank 0 goes first and leaves
/// a cache for the others.
fn read_split(
    context: &Context,
    task: &TrainTask,
    split: &str,
    roots: &[PathBuf],
) -> Result<Scan, TrainError> {
    let options =
        ScanOptions { single_cls: task.single_cls, ..ScanOptions::new(split, task.data.names.len()) };
    let barrier =
        || context.group.as_ref().map_or(Ok(()), |group| group.barrier(None).map_err(TrainError::from));
    if !context.is_main() {
        barrier()?;
        return Ok(scan(roots, &options)?);
    }
    // If this fails, the supervisor stops the ranks that wait.
    let found = scan(roots, &options)?;
    if split == "train" {
        barrier()?;
    }
    found.messages.iter().for_each(|message| context.reporter.warning(message));
    context.reporter.note(format!(
        "{split}: {}, {} without labels, {} corrupt",
        count(found.samples.len(), "image"),
        found.missing + found.empty,
        found.corrupt
    ));
    Ok(found)
}

fn open_val(context: &Context, plan: &RunPlan, task: &TrainTask, stride: usize) -> Result<Split, TrainError> {
    let samples: Arc<[Sample]> = read_split(context, task, "val", &task.data.val)?.samples.into();
    let settings = loader::ValSettings {
        image_size: task.image_size,
        stride,
        batch: plan.ranks.share(task.batch) * 2,
        workers: task.workers,
        rect: true,
        pad: VAL_PAD,
        cache: task.cache,
    };
    let loader = ValLoader::new(Arc::clone(&samples), settings)?;
    Ok(Split { samples, loader })
}

/// The model of the plan with the tensors of its weights, or of the checkpoint to resume.
fn build_model(
    context: &Context,
    task: &TrainTask,
    weights: Option<&WeightsFile>,
    resume: Option<&Resume>,
) -> Result<Model, TrainError> {
    tch::manual_seed(task.seed as i64 + 1 + context.rank as i64);
    let classes = Some(task.data.names.len());
    if let Some(resume) = resume {
        let model = Model::from_weights(&resume.model, classes, None, context.device)?;
        expect_all(&model.transfer(&resume.model, false)?)?;
        return Ok(model);
    }
    let model = match (&task.model, weights) {
        (Some(spec), _) => Model::new(spec, context.device)?,
        (None, Some(file)) => Model::from_weights(file, classes, task.hyp.anchors, context.device)?,
        (None, None) => {
            return Err(TrainError::new("the plan has neither a model nor weights")
                .with_hint("give `--cfg yolov5n` or `--weights FILE`"));
        }
    };
    if let Some(file) = weights {
        // Anchors of a yaml or of the hyperparameters win over those of the file (spec §10).
        let skip_anchors = task.model.is_some() || task.hyp.anchors.is_some();
        let transfer = model.transfer(file, skip_anchors)?;
        if context.is_main() {
            if transfer.matched == 0 {
                context.reporter.warning(format!(
                    "the weights do not fit the model, which starts untrained: {}",
                    transfer.summary()
                ));
            } else {
                context.reporter.note(transfer.summary());
            }
        }
    }
    if context.is_main() {
        context.reporter.note(model.summary()?.to_string());
    }
    Ok(model)
}

fn expect_all(transfer: &Transfer) -> Result<(), TrainError> {
    if transfer.matched == transfer.total {
        return Ok(());
    }
    Err(TrainError::new(format!("the checkpoint does not fit its own model: {}", transfer.summary())))
}

/// Checks how well the anchors fit the labels, and replaces them if others fit better (spec §7).
/// Rank 0 decides; the others get the anchors with the weights.
fn fit_anchors(
    context: &Context,
    task: &TrainTask,
    model: &Model,
    samples: &[Sample],
) -> Result<(), TrainError> {
    if !context.is_main() {
        return Ok(());
    }
    context.reporter.phase("fitting the anchors");
    let checked = autoanchor::check(model, samples, task.image_size, task.hyp.anchor_t, task.seed)?;
    context.reporter.note(checked.summary());
    Ok(())
}

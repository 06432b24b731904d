//! Everything that stands before the first step, in the order of the specification (spec §6): the
//! data, the model and its weights, frozen layers, anchors, the optimizer, the average, the
//! rounding of weights, and what ranks must share.

use std::path::PathBuf;
use std::sync::Arc;

use torch_checkpoint::WeightsFile;
use yolo_data::loader::{LoaderSettings, TrainLoader, ValLoader, ValSettings as LoaderValSettings};
use yolo_data::scan::{Sample, Scan, ScanOptions, scan};
use yolo_plan::RunPlan;
use yolo_plan::run::TrainTask;
use yolo_plan::schedule::{Schedule, scaled_weight_decay};

use super::learner::Learner;
use super::meter::Rate;
use super::stopper::Stopper;
use crate::autoanchor;
use crate::checkpoint::{Checkpoint, Progress, Resume, read_resume};
use crate::error::TrainError;
use crate::loss::LossSettings;
use crate::model::Model;
use crate::optim::{Average, Optimizer};
use crate::rank::Rank;
use crate::report::{ResultsFile, plot_labels, write_settings};
use crate::val::{ValOutcome, ValSettings, validate};

/// Padding of rectangular validation batches in strides (spec §7).
const VAL_PAD: f64 = 0.5;

/// A run in progress on one rank.
pub(super) struct Training<'a> {
    pub(super) context: &'a Rank,
    pub(super) plan: &'a RunPlan,
    pub(super) task: &'a TrainTask,
    pub(super) learner: Learner,
    pub(super) schedule: Schedule,
    pub(super) loader: Option<TrainLoader>,
    pub(super) val: Option<ValSplit>,
    pub(super) results: Option<ResultsFile>,
    pub(super) stopper: Stopper,
    pub(super) may_stop: bool,
    pub(super) progress: Progress,
    pub(super) rate: Rate,
}

/// The validation split, on rank 0.
pub(super) struct ValSplit {
    pub(super) samples: Arc<[Sample]>,
    pub(super) loader: ValLoader,
}

impl<'a> Training<'a> {
    pub(super) fn prepare(
        context: &'a Rank,
        plan: &'a RunPlan,
        task: &'a TrainTask,
    ) -> Result<Self, TrainError> {
        let names = &task.data.names;
        // Files of weights come first: a broken one is told before a large data set is scanned.
        let resume = task.resume.as_deref().map(read_resume).transpose()?;
        let weights = match &resume {
            None => task.weights.as_deref().map(torch_checkpoint::read).transpose()?,
            Some(_) => None,
        };
        context.reporter.phase("reading labels");
        let samples: Arc<[Sample]> = read_split(context, task, "train", &task.data.train)?.samples.into();

        context.reporter.phase("building the model");
        let model = build_model(context, task, names.len(), weights.as_ref(), resume.as_ref())?;
        model.freeze(&task.freeze)?;
        let stride = model.strides().iter().copied().fold(32.0, f64::max) as usize;
        let progress = resume.as_ref().map_or(
            Progress { epochs_done: 0, batches_done: 0, last_optimizer_step: -1, best_fitness: 0.0 },
            |resume| resume.progress,
        );
        let mut loader = TrainLoader::new(
            Arc::clone(&samples),
            LoaderSettings {
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
            },
        )?;
        // Its threads work on the first batches while this one prepares the rest.
        loader.prefetch(progress.epochs_done as u64, progress.batches_done);
        if resume.is_none() && task.autoanchor {
            fit_anchors(context, task, &model, &samples)?;
        }

        let learner = learner(context, task, model, resume.as_ref(), names.len())?;
        loader.take_warnings().into_iter().for_each(|message| context.reporter.warning(message));
        let batches = loader.batches_per_epoch();
        let (batch, nominal) = (task.batch, task.nominal_batch);
        let schedule = Schedule::new(&task.hyp, task.epochs, batches, batch, nominal, task.cos_lr);
        let val = if context.is_main() { Some(open_val(context, plan, task, stride)?) } else { None };
        if context.is_main() {
            write_settings(plan, task)?;
            if task.plots {
                plot_labels(&samples, names, &plan.run_dir.join("labels.svg"))?;
            }
        }
        let results = if context.is_main() {
            Some(ResultsFile::open(&plan.run_dir, progress.epochs_done)?)
        } else {
            None
        };
        Ok(Self {
            context,
            plan,
            task,
            learner,
            schedule,
            loader: Some(loader),
            val,
            results,
            stopper: Stopper::new(task.patience),
            may_stop: false,
            progress,
            rate: Rate::default(),
        })
    }

    /// Validates the averaged weights with the training's loss, on rank 0.
    pub(super) fn validate_average(&mut self) -> Result<ValOutcome, TrainError> {
        let names = &self.task.data.names;
        let (Some(average), Some(val)) = (self.learner.average(), &mut self.val) else {
            return Err(TrainError::new("only rank 0 validates"));
        };
        let settings = ValSettings::standard(self.task.single_cls);
        let loss = Some(self.learner.loss());
        validate(
            average.model(),
            &mut val.loader,
            &val.samples,
            names,
            &settings,
            loss,
            &mut |_, _| Ok(()),
            &mut |_| Ok(()),
        )
    }

    /// Where a checkpoint of this run lies.
    pub(super) fn weights_file(&self, name: &str) -> PathBuf {
        self.plan.run_dir.join("weights").join(name)
    }

    /// Writes a checkpoint with everything that the next step depends on.
    pub(super) fn save_as(&self, name: &str) -> Result<PathBuf, TrainError> {
        let path = self.weights_file(name);
        let checkpoint = Checkpoint { plan: self.plan, task: self.task };
        checkpoint.write_running(&path, &self.learner, self.progress)?;
        Ok(path)
    }

    /// Writes the checkpoints of an epoch: `last.pt`, `best.pt` when it is the best so far, and
    /// `epochN.pt` as often as the user asked.
    pub(super) fn save(&self, epoch: usize, best: bool) -> Result<(), TrainError> {
        self.save_as("last.pt")?;
        if best {
            self.save_as("best.pt")?;
        }
        if self.task.save_period.is_some_and(|period| period > 0 && epoch.is_multiple_of(period)) {
            self.save_as(&format!("epoch{epoch}.pt"))?;
        }
        Ok(())
    }

    /// Takes rank 0's decision: the same answer on every rank.
    pub(super) fn agree(&self, decision: bool) -> Result<bool, TrainError> {
        let Some(group) = &self.context.group else { return Ok(decision) };
        let flag = tch::Tensor::from_slice(&[f32::from(u8::from(decision))]);
        group.broadcast(&[&flag], 0)?;
        Ok(flag.f_double_value(&[0])? > 0.0)
    }
}

/// The model with its loss and optimizer, as the run starts or goes on, tied to the other ranks.
fn learner(
    context: &Rank,
    task: &TrainTask,
    model: Model,
    resume: Option<&Resume>,
    classes: usize,
) -> Result<Learner, TrainError> {
    let decay = scaled_weight_decay(task.hyp.weight_decay, task.nominal_batch, task.batch);
    let (lr, momentum) = (task.hyp.lr0, task.hyp.momentum);
    let mut optimizer = Optimizer::new(task.optimizer, model.state(), lr, momentum, decay)?;
    // The average starts from the weights as they were before they are rounded (spec §6).
    let mut average = if context.is_main() { Some(Average::new(&model)?) } else { None };
    if let Some(resume) = resume {
        optimizer.import(&resume.optimizer)?;
        if let Some(average) = &mut average {
            average.restore(&resume.averaged, resume.updates)?;
        }
    } else {
        model.round_to_half()?;
    }
    let levels = model.strides().len();
    let settings = LossSettings::scaled(&task.hyp, levels, classes, task.image_size, task.label_smoothing);
    if context.group.is_some() {
        context.reporter.phase("sharing the first weights");
    }
    let group = context.group.as_ref();
    let mut learner = Learner::new(model, optimizer, average, settings, group, task.sync_bn)?;
    if let Some(gradients) = resume.and_then(|resume| resume.gradients.as_ref()) {
        learner.restore_gradients(gradients)?;
    }
    Ok(learner)
}

/// Reads and verifies the labels of a split. Rank 0 goes first and leaves a cache for the others.
fn read_split(context: &Rank, task: &TrainTask, split: &str, roots: &[PathBuf]) -> Result<Scan, TrainError> {
    let options =
        ScanOptions { single_cls: task.single_cls, ..ScanOptions::new(split, task.data.names.len()) };
    let read = || scan(roots, &options).map_err(TrainError::from);
    let wait =
        || context.group.as_ref().map_or(Ok(()), |group| group.barrier(None).map_err(TrainError::from));
    if !context.is_main() {
        wait()?;
        return read();
    }
    let found = read();
    // The others wait for rank 0 even if it failed: the supervisor stops them with its message.
    let found = found?;
    if split == "train" {
        wait()?;
    }
    found.messages.iter().for_each(|message| context.reporter.warning(message));
    context.reporter.note(format!(
        "{split}: {} images, {} without labels, {} corrupt",
        found.samples.len(),
        found.missing + found.empty,
        found.corrupt
    ));
    Ok(found)
}

fn open_val(context: &Rank, plan: &RunPlan, task: &TrainTask, stride: usize) -> Result<ValSplit, TrainError> {
    let samples: Arc<[Sample]> = read_split(context, task, "val", &task.data.val)?.samples.into();
    let loader = ValLoader::new(
        Arc::clone(&samples),
        LoaderValSettings {
            image_size: task.image_size,
            stride,
            batch: plan.ranks.share(task.batch) * 2,
            workers: task.workers,
            rect: true,
            pad: VAL_PAD,
            cache: task.cache,
        },
    )?;
    Ok(ValSplit { samples, loader })
}

/// The model of the plan with the tensors of its weights, or of the checkpoint to be continued.
fn build_model(
    context: &Rank,
    task: &TrainTask,
    classes: usize,
    weights: Option<&WeightsFile>,
    resume: Option<&Resume>,
) -> Result<Model, TrainError> {
    tch::manual_seed(task.seed as i64 + 1 + context.rank as i64);
    if let Some(resume) = resume {
        let model = Model::from_weights(&resume.model, Some(classes), context.device)?;
        expect_all(&model.transfer(&resume.model, false)?)?;
        return Ok(model);
    }
    let model = match (&task.model, weights) {
        (Some(spec), _) => Model::new(spec, context.device)?,
        (None, Some(file)) => Model::from_weights(file, Some(classes), context.device)?,
        (None, None) => {
            return Err(TrainError::new("the plan names neither a model nor weights")
                .with_hint("give `--cfg yolov5n` or `--weights FILE`"));
        }
    };
    if let Some(file) = weights {
        let skip_anchors = task.model.is_some() || task.hyp.anchors.is_some();
        let transfer = model.transfer(file, skip_anchors)?;
        if context.is_main() {
            context.reporter.note(transfer.summary());
        }
    }
    if context.is_main() {
        context.reporter.note(model.summary()?.to_string());
    }
    Ok(model)
}

fn expect_all(transfer: &crate::model::Transfer) -> Result<(), TrainError> {
    if transfer.matched == transfer.total {
        return Ok(());
    }
    Err(TrainError::new(format!("the checkpoint does not fit its own model: {}", transfer.summary())))
}

/// Checks how well the anchors fit the labels and replaces them when others fit better (spec §7).
/// Rank 0 decides; the anchors are broadcast with the weights.
fn fit_anchors(
    context: &Rank,
    task: &TrainTask,
    model: &Model,
    samples: &[Sample],
) -> Result<(), TrainError> {
    if !context.is_main() {
        return Ok(());
    }
    context.reporter.phase("fitting the anchors");
    let report = autoanchor::check(model, samples, task.image_size, task.hyp.anchor_t, task.seed)?;
    context.reporter.note(report.summary());
    Ok(())
}

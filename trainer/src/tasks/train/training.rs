//! [`Training`]: a run in progress on one rank, with what all its phases share: validating the
//! averaged weights and saving checkpoints.

use std::path::PathBuf;

use torch_checkpoint::Value;
use yolo_data::loader::TrainLoader;
use yolo_plan::RunPlan;
use yolo_plan::dataset::SplitSummary;
use yolo_plan::event::Event;
use yolo_plan::precision::Precision;
use yolo_plan::report::{RunReport, WorstImage};
use yolo_plan::run::TrainTask;
use yolo_plan::schedule::Schedule;

use super::early_stopping::EarlyStopping;
use super::event_log::EventLog;
use crate::checkpoint::{Checkpoint, Progress, TrainingState};
use crate::detection::ImageResult;
use crate::error::TrainError;
use crate::learner::Learner;
use crate::model::Model;
use crate::rank::context::{Context, Ending};
use crate::report::{ResultsFile, facts_of_validation, unwritable_report};
use crate::tasks::val::{Observer, Split, ValidateOptions, Validation, validate};
use crate::training::Rate;

/// The IoU of suppression in the final validation on COCO (spec §9).
const COCO_IOU: f64 = 0.65;

/// A run in progress on one rank.
pub(super) struct Training<'a> {
    pub(super) context: &'a Context,
    pub(super) plan: &'a RunPlan,
    pub(super) task: &'a TrainTask,
    pub(super) learner: Learner,
    pub(super) schedule: Schedule,
    /// `None` while an epoch runs.
    pub(super) loader: Option<TrainLoader>,
    /// The validation split, with this rank's share of its batches.
    pub(super) val: Split,
    /// `results.csv`, on rank 0.
    pub(super) results: Option<ResultsFile>,
    pub(super) stopping: EarlyStopping,
    pub(super) progress: Progress,
    pub(super) rate: Rate,
    /// What the report of the run will show, on rank 0; `None` without plots.
    pub(super) report: Option<RunReport>,
    /// What the splits of the data set have, on rank 0.
    pub(super) data: Vec<SplitSummary>,
    /// The event file for TensorBoard, on rank 0 with `--tensorboard`.
    pub(super) events: EventLog<'a>,
}

impl Training<'_> {
    /// Whether validation computes in half precision: on CUDA, in a run that trains with float16. As in YOLOv5, a GPU that
    /// cannot compute in float16 validates in float32 too.
    pub(super) fn validates_half(&self) -> bool {
        self.context.device.is_cuda() && self.learner.precision() == Precision::Fp16
    }

    /// Validates the averaged weights with the training's loss; all ranks do it together. Returns the same on every rank:
    /// `None` if the user interrupted it.
    pub(super) fn validate_average(&mut self) -> Result<Option<Validation>, TrainError> {
        self.learner.share_average()?;
        let Some(model) = self.learner.averaged_model() else {
            return Err(TrainError::new("this rank has no averaged weights to validate"));
        };
        let half = self.validates_half();
        let options =
            ValidateOptions { half, ..ValidateOptions::standard(self.task.single_cls, self.context.threads) };
        // A copy: YOLOv5 rounds the averaged weights themselves, which then keep less of each step.
        let copy = if half { Some(model.fused_half()?) } else { None };
        let model = copy.as_ref().unwrap_or(model);
        let mut observer = UntilInterrupted { context: self.context, on_image: &mut |_| Ok(()) };
        let loss = Some(self.learner.loss());
        let result = validate(
            std::slice::from_ref(model),
            &mut self.val,
            &self.task.data.names,
            &options,
            loss,
            &mut observer,
        );
        self.val.warn(self.context);
        result
    }

    /// Validates `model`, which is in half precision if [`Self::validates_half`], as `yolo val` does, together with the other
    /// ranks, and shows each image of this rank's share to `on_image`. Returns the same on every rank: `None` if the user
    /// interrupted it.
    pub(super) fn validate_final(
        &mut self,
        model: &Model,
        on_image: &mut dyn FnMut(&ImageResult<'_>) -> Result<(), TrainError>,
    ) -> Result<Option<Validation>, TrainError> {
        let mut options = ValidateOptions::standard(self.task.single_cls, self.context.threads);
        options.half = self.validates_half();
        if self.task.data.is_coco() {
            options.nms.iou_thres = COCO_IOU;
        }
        let mut observer = UntilInterrupted { context: self.context, on_image };
        let result = validate(
            std::slice::from_ref(model),
            &mut self.val,
            &self.task.data.names,
            &options,
            None,
            &mut observer,
        );
        self.val.warn(self.context);
        result
    }

    /// Keeps a validation for the report of the run.
    pub(super) fn keep_for_report(&mut self, title: String, validation: &Validation, worst: Vec<WorstImage>) {
        if let Some(report) = &mut self.report {
            let Validation { table, scores, confusion, .. } = validation;
            report.validations = vec![facts_of_validation(title, table, scores, confusion, worst)];
        }
    }

    /// Writes what is known for the report of the run.
    pub(super) fn write_report(&self) -> Result<(), TrainError> {
        let Some(report) = &self.report else { return Ok(()) };
        report.write(&self.plan.run_dir).map_err(unwritable_report)
    }

    /// The path of a checkpoint of this run.
    pub(super) fn weights_file(&self, name: &str) -> PathBuf {
        self.plan.run_dir.join("weights").join(name)
    }

    /// Writes a checkpoint with everything that the next step depends on.
    pub(super) fn save_as(&self, name: &str) -> Result<PathBuf, TrainError> {
        let Some(ema) = self.learner.ema() else { return Err(TrainError::new("only rank 0 saves")) };
        let path = self.weights_file(name);
        // At the end of an epoch the rest of a nominal batch is dropped (spec §6).
        let between_steps = self.progress.batches_done > 0;
        let state = TrainingState {
            model: self.learner.model(),
            ema: ema.model(),
            ema_updates: ema.updates(),
            optimizer: self.learner.optimizer().state_dict()?,
            gradients: if between_steps { self.learner.gradients()? } else { Value::None },
            scaler: self.learner.scaler_state()?,
            progress: self.progress.clone(),
            batches: self.schedule.batches,
            data: &self.data,
        };
        Checkpoint { task: self.task }.write_running(&path, state)?;
        Ok(path)
    }

    /// Writes the checkpoints of an epoch: `best.pt` if it is the best so far, `epochN.pt` as often
    /// as the user asked, and `last.pt`.
    ///
    /// Invariant: `last.pt` is written last. If the run is killed before that, resuming repeats the
    /// epoch, which writes the others again; `last.pt` never claims a best fitness that `best.pt`
    /// does not have.
    pub(super) fn save(&self, epoch: usize, best: bool) -> Result<(), TrainError> {
        if best {
            self.save_as("best.pt")?;
        }
        if self.task.save_period.is_some_and(|period| period > 0 && epoch.is_multiple_of(period)) {
            self.save_as(&format!("epoch{epoch}.pt"))?;
        }
        self.save_as("last.pt")?;
        Ok(())
    }

    /// Saves the state in the middle of an epoch, so that the run can continue with the next batch.
    pub(super) fn interrupt(&mut self) -> Result<Ending, TrainError> {
        // The checkpoint has one set of gradients for all ranks.
        self.learner.share_gradients()?;
        if self.context.is_main() {
            self.write_report()?;
            // An evolution repeats the generation, because the next ones depend on it.
            let mut resume_from = None;
            if !self.task.evolve {
                self.context.reporter.phase("saving the interrupted run");
                resume_from = Some(self.save_as("last.pt")?);
            }
            self.context.reporter.send(&Event::Interrupted { resume_from });
        }
        // No rank leaves before the file is written: the supervisor stops all when one ends.
        self.context.broadcast(0)?;
        Ok(Ending::Interrupted)
    }
}

/// Stops a validation when the user interrupts the run.
struct UntilInterrupted<'a> {
    context: &'a Context,
    on_image: &'a mut dyn FnMut(&ImageResult<'_>) -> Result<(), TrainError>,
}

impl Observer for UntilInterrupted<'_> {
    fn image(&mut self, image: &ImageResult<'_>) -> Result<(), TrainError> {
        (self.on_image)(image)
    }

    fn batch_done(&mut self, done: usize, batches: usize) -> bool {
        // After the last batch the result is there, so it is used.
        done == batches || !self.context.asked_to_stop()
    }
}

//! The plan of a run: all decisions that follow from options, files and the machine, made once,
//! before a process starts. The command writes it to `plan.json` in the run folder, and every rank
//! reads it from there.
//!
//! Invariant: ranks decide nothing by themselves, so that no two ranks can disagree.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::dataset::DataSet;
use crate::error::PlanError;

mod addresses;
mod before_training;
mod bench;
mod bench_tables;
mod deep_check;
mod defaults;
mod export;
mod export_formats;
mod folder;
mod image_size;
mod join_resumed;
mod one_process;
mod opt_yaml;
mod options_alone;
mod planning;
mod predict;
mod ranks;
mod read_opt_yaml;
mod resumable;
mod resume;
mod resume_ranks;
mod resume_yolov5;
mod screen;
mod source_files;
mod source_names;
mod sources;
mod train;
mod train_checks;
mod val;
mod video;
mod weights;

pub use before_training::{BatchMeasurement, plan_batch_memory, plan_loader_threads};
pub use bench::{BenchPart, BenchTask, plan_bench};
pub use bench_tables::{PlannedRow, PlannedTables, Table, TablesPlanning, plan_bench_tables};
pub use deep_check::{DeepCheckTask, DeepPart, plan_deep_check};
pub use defaults::EffectiveOptions;
pub use export::{ExportFile, ExportTask, OnnxNms, OnnxSettings, plan_export};
pub use export_formats::ExportFormat;
pub use folder::{increment, newest_checkpoint};
pub use join_resumed::{JoinTask, plan_join_rank_0, plan_join_resumed, ranks_joining};
pub use opt_yaml::opt_yaml;
pub use options_alone::{check_train_options, check_val_options};
pub use planning::{Need, PlanContext, Planning};
pub use predict::{PredictTask, SavedBoxes, plan_predict};
pub use ranks::{Part, Ranks};
pub use read_opt_yaml::read_opt_yaml;
pub use resumable::{WrittenBy, check_resumable, lacks};
pub use resume::{ranks_to_resume, resumes_here};
pub use source_names::Picture;
pub use train::{TrainTask, plan_train};
pub use train_checks::check_freeze;
pub use val::{Split, ValMode, ValTask, plan_val};
pub use video::{Video, VideoKind};
pub use weights::WeightsName;

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

/// What the ranks of a run do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Task {
    /// Train a detector.
    Train(Box<TrainTask>),
    /// Train a detector in a resumed run, whose [`Self::Train`] rank 0 sends.
    Join(JoinTask),
    /// Validate a detector.
    Val(Box<ValTask>),
    /// Write the weights of a detector in other formats.
    Export(ExportTask),
    /// Find objects in pictures.
    Predict(Box<PredictTask>),
    /// Measure the speed of training: `yolo bench`.
    Bench(Box<BenchTask>),
    /// Test the devices, the links between them and the disk: `yolo doctor --deep`.
    #[serde(rename = "probe")]
    DeepCheck(DeepCheckTask),
}

impl Task {
    /// The training run, if it is one.
    pub fn train(&self) -> Option<&TrainTask> {
        match self {
            Self::Train(task) => Some(task),
            _ => None,
        }
    }

    /// The settings of the training run that the task is, or whose speed it measures.
    pub fn training(&self) -> Option<&TrainTask> {
        match self {
            Self::Bench(task) => Some(&task.training),
            _ => self.train(),
        }
    }

    /// Whether the run has a folder for what it writes. An export writes next to the weights.
    pub fn has_folder(&self) -> bool {
        !matches!(self, Self::Export(_))
    }

    /// What the ranks are doing, for a progress line.
    pub fn doing(&self) -> &'static str {
        match self {
            Self::Train(_) | Self::Join(_) => "training",
            Self::Val(_) => "validating",
            Self::Export(_) => "exporting",
            Self::Predict(_) => "predicting",
            Self::Bench(_) => "measuring",
            Self::DeepCheck(_) => "testing",
        }
    }
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
    /// Whether the run continues in its folder, which exists.
    pub in_its_folder: bool,
}

impl RunPlan {
    /// A plan of this version of `yolo`.
    fn new(ranks: Ranks, run_dir: PathBuf, task: Task) -> Self {
        Self { version: PLAN_VERSION, program: program(), ranks, run_dir, task }
    }

    /// Whether the plan continues an earlier run in its folder.
    pub fn resumes(&self) -> bool {
        self.task.train().is_some_and(|task| task.resume.is_some())
    }

    /// The plan that continues this training run from one of its checkpoints, or starts it again.
    #[must_use]
    pub fn resumed_from(mut self, checkpoint: Option<PathBuf>) -> Self {
        if let Task::Train(task) = &mut self.task {
            task.resume = checkpoint;
        }
        self
    }

    /// Takes over what the master of a run on several machines has planned. The devices, the files and the
    /// run folder stay those of this machine.
    pub fn take_task_of(&mut self, master: Self) {
        self.ranks.backend = master.ranks.backend;
        if let (Task::Train(own), Task::Train(mut task)) = (&self.task, master.task) {
            let names = std::mem::take(&mut task.data.names);
            task.data = DataSet { names, ..own.data.clone() };
            task.weights.clone_from(&own.weights);
            task.workers = own.workers;
            self.task = Task::Train(task);
        }
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
        const REPLACE: &str =
            "restore the file, or start a new run from the weights of this one with --weights";
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| PlanError::new(format!("cannot read the plan {shown}: {error}")))?;
        let damaged = |error: serde_json::Error| {
            PlanError::new(format!("{shown} is damaged or no plan of a run: {error}")).with_hint(REPLACE)
        };
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
                return Err(PlanError::new(format!("{shown} is no plan of a run: it has no version"))
                    .with_hint(REPLACE));
            }
        }
        serde_json::from_value(value).map_err(damaged)
    }
}

/// The version that `yolo` and the trainer share.
fn program() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

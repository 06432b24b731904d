//! The plan that continues a run of YOLOv5 itself (spec §10). The options are those in its `opt.yaml` and `hyp.yaml`; only
//! where it runs may change. From then on the run is one of `yolo`, with a plan in its folder.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use yolo_base::Hint as _;
use yolo_base::format::list;

use super::read_opt_yaml::read_opt_yaml;
use super::{PLAN_FILE, PlanContext, Planning, Task};
use crate::auto_batch::AUTO;
use crate::error::PlanError;
use crate::options::{TrainOptions, Workers};
use crate::yaml::{self, show};

/// The options of a run of YOLOv5, in the folder of the run.
const OPT_FILE: &str = "opt.yaml";
/// Its hyperparameters.
const HYP_FILE: &str = "hyp.yaml";
/// Options of `yolo` that its own `opt.yaml` has, and that of YOLOv5 has not.
const OF_YOLO: &str = "nbs";
/// Options that say where a run is and from what it started, which a resumed run does not use, and those that have no
/// effect here.
const NOT_USED: [&str; 14] = [
    "hyp",
    "resume",
    "exist_ok",
    "save_dir",
    "project",
    "name",
    "weights",
    "cfg",
    "local_rank",
    "entity",
    "upload_dataset",
    "bbox_interval",
    "artifact_alias",
    "evolve_population",
];

/// Whether this is the folder of a run of YOLOv5.
pub(super) fn is_run(folder: &Path) -> bool {
    let file = folder.join(OPT_FILE);
    !folder.join(PLAN_FILE).exists()
        && file.is_file()
        // What cannot be read is reported when the run is planned.
        && yaml::read(&file, "options").map_or(true, |options| options.get(OF_YOLO).is_none())
}

/// A run of YOLOv5 that is to be continued.
#[derive(Debug)]
pub(super) struct Yolov5Run {
    folder: PathBuf,
    checkpoint: PathBuf,
    /// Its options, with the checkpoint as the weights.
    pub(super) options: TrainOptions,
    /// The weights that it started from.
    started_from: Option<PathBuf>,
    /// About options that `yolo` does not have.
    warning: Option<String>,
}

impl Yolov5Run {
    /// Reads the options of the run in `folder`, to continue it from `checkpoint`. `given` are the options of the resumed
    /// run.
    ///
    /// # Errors
    /// When the files of the run cannot be read.
    pub(super) fn read(
        folder: PathBuf,
        checkpoint: PathBuf,
        given: &TrainOptions,
        context: &PlanContext,
    ) -> Result<Self, PlanError> {
        if context.part.is_some() {
            return Err(only_on_one_machine(&folder));
        }
        let (options, started_from, warning) = options(&folder, given)?;
        // The checkpoint takes the place of the weights, and describes the model.
        let weights = Some(checkpoint.to_string_lossy().into_owned());
        let options = TrainOptions { weights, cfg: Some(String::new()), ..options };
        Ok(Self { folder, checkpoint, options, started_from, warning })
    }

    /// What planning a new run with the options of this one says about continuing it. `notes` come first.
    ///
    /// # Errors
    /// When what the options name is not there.
    pub(super) fn continued(
        self,
        planning: Result<Planning, PlanError>,
        notes: Vec<String>,
    ) -> Result<Planning, PlanError> {
        let Self { folder, checkpoint, options: _, started_from, warning } = self;
        let mut planning = planning.map_err(|error| {
            let hint = error.hint().map(|hint| format!("{hint}; "));
            let text = format!("the run of YOLOv5 in {} cannot be resumed: {error}", folder.display());
            PlanError::new(text).with_hint(format!(
                "{}its options are in {}, where you can correct them",
                hint.unwrap_or_default(),
                folder.join(OPT_FILE).display()
            ))
        })?;
        if let Planning::Ready(planned) = &mut planning {
            planned.plan.run_dir = folder;
            planned.in_its_folder = true;
            planned.warnings.extend(warning);
            planned.notes.splice(0..0, notes);
            planned.notes.push(
                "the run is one of YOLOv5: weights, average, optimizer and epoch are restored, the weights as rounded \
                 to fp16 in the file; images come in another order"
                    .to_owned(),
            );
            if let Task::Train(task) = &mut planned.plan.task {
                task.resume = Some(checkpoint);
                task.weights = started_from;
            }
        }
        Ok(planning)
    }
}

/// The error for a run that would be resumed elsewhere too: each machine and rank would have to plan it.
pub(super) fn only_on_one_machine(run_dir: &Path) -> PlanError {
    PlanError::new(format!(
        "the run in {} is one of YOLOv5, which cannot be resumed on several machines or with `yolo rank`",
        run_dir.display()
    ))
    .with_hint("resume it with `yolo train --resume` on one machine until its first checkpoint")
}

/// The options of the run, the weights that it started from, and a warning about the options that `yolo` does not have.
fn options(
    run_dir: &Path,
    given: &TrainOptions,
) -> Result<(TrainOptions, Option<PathBuf>, Option<String>), PlanError> {
    let file = &run_dir.join(OPT_FILE);
    let mut saved = Saved { map: read_opt_yaml(file)?, file };
    let hyp = match run_dir.join(HYP_FILE) {
        hyp if hyp.is_file() => hyp,
        hyp => {
            return Err(PlanError::new(format!(
                "the run of YOLOv5 in {} cannot be resumed: its hyperparameters, {}, are missing",
                run_dir.display(),
                hyp.display()
            ))
            .with_hint("restore the file from a copy of the run"));
        }
    };
    let started_from = saved.take::<String>("weights", "a path")?.filter(|path| !path.is_empty());
    let options = TrainOptions {
        hyp: Some(hyp.to_string_lossy().into_owned()),
        data: saved.take("data", "a path")?,
        epochs: saved.take("epochs", "a number")?,
        batch_size: saved.take("batch_size", "a number")?,
        imgsz: saved.take("imgsz", "a number")?,
        rect: saved.flag("rect")?,
        nosave: saved.flag("nosave")?,
        noval: saved.flag("noval")?,
        noautoanchor: saved.flag("noautoanchor")?,
        noplots: saved.flag("noplots")?,
        cache: saved.take("cache", "ram or disk")?,
        image_weights: saved.flag("image_weights")?,
        multi_scale: saved.flag("multi_scale")?,
        single_cls: saved.flag("single_cls")?,
        optimizer: saved.take("optimizer", "SGD, Adam or AdamW")?,
        sync_bn: saved.flag("sync_bn")?,
        quad: saved.flag("quad")?,
        cos_lr: saved.flag("cos_lr")?,
        label_smoothing: saved.take("label_smoothing", "a number")?,
        patience: saved.take("patience", "a number")?,
        freeze: saved.take("freeze", "a list of layers")?.unwrap_or_default(),
        save_period: saved.take("save_period", "a number")?,
        seed: saved.take("seed", "a number")?,
        // Where the run is trained.
        device: given.device.clone().or(saved.device()?),
        workers: given.workers.or(saved.take("workers", "a number")?.map(Workers::Count)),
        nproc_per_node: given.nproc_per_node,
        parallel: given.parallel,
        backend: given.backend,
        nccl: given.nccl.clone(),
        max_restarts: given.max_restarts,
        exist_ok: true,
        ..TrainOptions::default()
    };
    if options.data.is_none() || options.epochs.is_none() {
        return Err(PlanError::new(format!(
            "{} has no `data` or no `epochs`, so it is not the options of a run",
            file.display()
        ))
        .with_hint("restore the file from a copy of the run"));
    }
    if options.batch_size == Some(AUTO) {
        return Err(PlanError::new(format!(
            "{}: batch_size is {AUTO}, and the file does not say which batch was measured",
            file.display()
        ))
        .with_hint("write the number into the file; YOLOv5 printed it when the run started"));
    }
    Ok((options, started_from.map(PathBuf::from), saved.unknown()))
}

/// What is left of the options in a file.
struct Saved<'a> {
    map: Map<String, Value>,
    file: &'a Path,
}

impl Saved<'_> {
    /// The option of this name, if it is there. `what` is what it must be.
    fn take<T: DeserializeOwned>(&mut self, name: &str, what: &str) -> Result<Option<T>, PlanError> {
        let Some(value) = self.map.shift_remove(name).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        serde_json::from_value(value.clone()).map(Some).map_err(|_| {
            PlanError::new(format!("{}: {name} is {}; it must be {what}", self.file.display(), show(&value)))
                .with_hint("correct the file")
        })
    }

    fn flag(&mut self, name: &str) -> Result<bool, PlanError> {
        Ok(self.take(name, "true or false")?.unwrap_or(false))
    }

    /// `device`, of which YAML reads `0` as a number.
    fn device(&mut self) -> Result<Option<String>, PlanError> {
        if let Some(number) = self.map.get("device").and_then(Value::as_u64) {
            self.map.shift_remove("device");
            return Ok(Some(number.to_string()));
        }
        Ok(self.take::<String>("device", "a list of devices")?.filter(|device| !device.trim().is_empty()))
    }

    /// The warning about options that have a value and are none of `yolo`.
    fn unknown(&self) -> Option<String> {
        let is_given = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::Number(number) => number.as_i64() != Some(-1),
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => true,
        };
        let unknown = |(name, value): (&String, &Value)| {
            (is_given(value) && !NOT_USED.contains(&name.as_str())).then(|| name.clone())
        };
        let unknown: Vec<String> = self.map.iter().filter_map(unknown).collect();
        (!unknown.is_empty()).then(|| {
            format!(
                "{} of {} have no effect here: yolo does not have them",
                list(&unknown),
                self.file.display()
            )
        })
    }
}

//! The plan of `yolo train --resume`: the plan of the run that it continues, in the same folder. Its
//! options are those of the first start (spec §10); only where it runs may change. A run that was killed
//! before its first checkpoint starts again from the beginning. `resume_yolov5.rs` continues runs of YOLOv5 itself.

use std::path::{Path, PathBuf};

use super::resume_ranks::{self, Before};
use super::resume_yolov5::{self, Yolov5Run};
use super::{PLAN_FILE, PlanContext, Planned, RunPlan, Task, folder};
use crate::error::PlanError;
use crate::options::{TrainOptions, option_name};

/// The options that a resumed run takes, by their fields in [`TrainOptions`]. They do not change what
/// the run computes.
pub(super) const MAY_CHANGE: [&str; 8] =
    ["resume", "device", "nproc_per_node", "parallel", "backend", "nccl", "workers", "max_restarts"];

/// What to do about a path that is of no run.
const NAME_A_RUN: &str = "name the folder of a run, such as runs/train/exp, or its weights/last.pt; without a path, \
                          --resume continues the newest run below runs";

/// What `--resume` names.
struct Interrupted {
    run_dir: PathBuf,
    /// `None` before the first checkpoint.
    checkpoint: Option<PathBuf>,
    /// The path as messages show it.
    shown: String,
}

/// What `--resume` continues.
#[derive(Debug)]
pub(super) enum Resumed {
    /// A run of `yolo`, with its plan.
    OfYolo(Box<Planned>),
    /// A run of YOLOv5, which is planned by its options, and what the user should read before.
    OfYolov5(Box<Yolov5Run>, Vec<String>),
}

/// The plan that continues the run of `checkpoint`, which is a file, a run folder, or empty for the
/// newest run below `runs`. The checkpoint is not read here, see [`check_resumable`](super::check_resumable).
///
/// # Errors
/// When there is no such checkpoint, or no training plan in its run folder, or the options cannot be
/// used with it.
pub(super) fn plan_resume(
    checkpoint: &str,
    options: &TrainOptions,
    context: &PlanContext,
) -> Result<Resumed, PlanError> {
    refuse_other_options(options, &MAY_CHANGE)?;
    let mut notes = Vec::new();
    let Interrupted { run_dir, checkpoint, shown } = interrupted(checkpoint, context, &mut notes)?;
    if let Some(checkpoint) = checkpoint.clone().filter(|_| resume_yolov5::is_run(&run_dir)) {
        return Ok(Resumed::OfYolov5(
            Box::new(Yolov5Run::read(run_dir, checkpoint, options, context)?),
            notes,
        ));
    }
    let mut plan = RunPlan::read(&run_dir.join(PLAN_FILE))?;
    let Task::Train(task) = &mut plan.task else { return Err(no_training_run(&shown)) };
    if checkpoint.is_none() {
        notes
            .push(format!("the run of {shown} has no checkpoint yet, so it starts again from the beginning"));
    }
    task.resume = checkpoint;
    task.max_restarts = options.max_restarts.unwrap_or(task.max_restarts);
    let images_as_one = task.images_as_one();
    let before = Before {
        ranks: &mut plan.ranks,
        workers: &mut task.workers,
        batch: task.batch,
        parallel: &mut task.parallel,
        split: &mut task.batch_split,
        sync_bn: task.sync_bn,
        images_as_one,
    };
    let warnings = resume_ranks::choose(options, context, before, &mut notes)?;
    let (precision, note) = task.precision.resume_on(&plan.ranks.all_devices());
    task.precision = precision;
    notes.extend(note);
    plan.run_dir = run_dir;
    plan.program = super::program();
    Ok(Resumed::OfYolo(Box::new(Planned { plan, warnings, notes, in_its_folder: true })))
}

/// How many ranks a resumed run would have on this machine if it were on no other, and its batch over all ranks. For
/// runs on several machines, which meet before their ranks are known.
///
/// # Errors
/// As [`plan_train`](super::plan_train) with the same options.
pub fn ranks_to_resume(
    checkpoint: &str,
    options: &TrainOptions,
    context: &PlanContext,
) -> Result<(usize, usize), PlanError> {
    refuse_other_options(options, &MAY_CHANGE)?;
    let Interrupted { run_dir, shown, .. } = interrupted(checkpoint, context, &mut Vec::new())?;
    if resume_yolov5::is_run(&run_dir) {
        return Err(resume_yolov5::only_on_one_machine(&run_dir));
    }
    let plan = RunPlan::read(&run_dir.join(PLAN_FILE))?;
    let task = plan.task.train().ok_or_else(|| no_training_run(&shown))?;
    let choice = resume_ranks::devices(options, &plan.ranks, &context.inventory)?;
    Ok((choice.devices.len(), task.batch))
}

/// Whether there is something at the path that `--resume` names, or any run if it names none.
pub fn resumes_here(checkpoint: &str, context: &PlanContext) -> bool {
    let working_dir = &context.places.working_dir;
    match checkpoint {
        "" => folder::newest_checkpoint(&working_dir.join("runs")).is_ok(),
        path => working_dir.join(path).exists(),
    }
}

/// The run that `--resume` names, or the newest.
fn interrupted(
    checkpoint: &str,
    context: &PlanContext,
    notes: &mut Vec<String>,
) -> Result<Interrupted, PlanError> {
    let working_dir = &context.places.working_dir;
    if !checkpoint.is_empty() {
        return find(&working_dir.join(checkpoint));
    }
    let newest = folder::newest_checkpoint(&working_dir.join("runs"))?;
    notes.push(format!("resuming the newest run: {}", newest.display()));
    of_checkpoint(&newest)
}

fn no_training_run(shown: &str) -> PlanError {
    PlanError::new(format!("the run of {shown} was not a training run and cannot be resumed"))
}

/// Refuses the options that a resumed run would ignore: all but those of these fields.
pub(super) fn refuse_other_options(options: &TrainOptions, may_change: &[&str]) -> Result<(), PlanError> {
    let fields = serde_json::to_value(options)
        .map_err(|error| PlanError::new(format!("cannot read the options of --resume: {error}")))?;
    let is_given = |value: &serde_json::Value| match value {
        serde_json::Value::Null | serde_json::Value::Bool(false) => false,
        serde_json::Value::Array(list) => !list.is_empty(),
        _ => true,
    };
    let fields = fields.as_object().into_iter().flatten();
    let ignored: Vec<String> = fields
        .filter(|(name, value)| is_given(value) && !may_change.contains(&name.as_str()))
        .map(|(name, _)| option_name(name))
        .collect();
    if ignored.is_empty() {
        return Ok(());
    }
    let allowed = may_change.iter().filter(|name| **name != "resume");
    let allowed: Vec<String> = allowed.map(|name| option_name(name)).collect();
    Err(PlanError::usage(format!(
        "{} cannot be changed with --resume: a resumed run keeps the options of its first start",
        ignored.join(", ")
    ))
    .with_hint(format!(
        "give only {} with --resume; for other options, start a new run from the weights with --weights",
        allowed.join(", ")
    )))
}

/// The run of a path: a checkpoint in a run folder, or the folder itself.
fn find(path: &Path) -> Result<Interrupted, PlanError> {
    if path.is_file() {
        return of_checkpoint(path);
    }
    if !path.is_dir() {
        return Err(PlanError::new(format!(
            "--resume {}: there is no such run or checkpoint",
            path.display()
        ))
        .with_hint(NAME_A_RUN));
    }
    for inside in ["weights/last.pt", "last.pt"] {
        let file = path.join(inside);
        if file.is_file() {
            return of_checkpoint(&file);
        }
    }
    if path.join(PLAN_FILE).is_file() {
        let run_dir = real(path)?;
        // Invariant: such a run does not start again, which would replace what it has. Whoever reads the checkpoint
        // says that it is not there, and which others are.
        let checkpoint = has_lost_last(&run_dir).then(|| run_dir.join("weights/last.pt"));
        return Ok(Interrupted { run_dir, checkpoint, shown: path.display().to_string() });
    }
    Err(PlanError::new(format!("--resume {}: there is no weights/last.pt in this folder", path.display()))
        .with_hint(NAME_A_RUN))
}

/// Whether a run without `last.pt` has had one: it has a best checkpoint, and the results of two epochs. A run that
/// is killed while it saves for the first time has the best checkpoint and the results of one.
fn has_lost_last(run_dir: &Path) -> bool {
    let results = std::fs::read_to_string(run_dir.join("results.csv")).unwrap_or_default();
    // One line has the names of the columns.
    run_dir.join("weights/best.pt").is_file() && results.lines().count() > 2
}

/// The run of a checkpoint, which may be a link to a file in a run folder.
fn of_checkpoint(checkpoint: &Path) -> Result<Interrupted, PlanError> {
    let shown = checkpoint.display().to_string();
    let real = real(checkpoint)?;
    let candidates = [real.parent().and_then(Path::parent), real.parent()];
    let of_yolo = candidates.into_iter().flatten().find(|folder| folder.join(PLAN_FILE).is_file());
    let is_of_yolov5 = |folder: &&Path| resume_yolov5::is_run(folder);
    let Some(run_dir) = of_yolo.or_else(|| candidates.into_iter().flatten().find(is_of_yolov5)) else {
        let is_weights = |extension| extension == "pt" || extension == "safetensors";
        if !real.extension().is_some_and(is_weights) {
            let what = format!("--resume {shown}: this is neither the folder of a run nor a checkpoint");
            return Err(PlanError::new(what).with_hint(NAME_A_RUN));
        }
        return Err(PlanError::new(format!(
            "the run of {shown} cannot be resumed: there is neither {PLAN_FILE} nor the opt.yaml of YOLOv5 \
             in the folder above weights"
        ))
        .with_hint(
            "only runs of `yolo train` and of YOLOv5 can be resumed, in their folders; start a new run from these weights \
             with --weights",
        ));
    };
    Ok(Interrupted { run_dir: run_dir.to_owned(), checkpoint: Some(real.clone()), shown })
}

fn real(path: &Path) -> Result<PathBuf, PlanError> {
    path.canonicalize()
        .map_err(|error| PlanError::new(format!("cannot read --resume {}: {error}", path.display())))
}

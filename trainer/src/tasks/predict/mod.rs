//! `yolo predict`: a model looks for objects in the user's pictures and videos. Threads read pictures ahead of the network and
//! write results behind it. Several ranks share the pictures; each writes the files of its own, and rank 0 those of
//! all.

mod ahead;
mod csv;
mod features;
mod films;
mod preview;
mod read;
mod search;
mod video;
mod write;

use std::sync::Arc;
use std::time::Instant;

use yolo_base::format::{count_of, list};
use yolo_plan::RunPlan;
use yolo_plan::event::{Event, OutputFile};
use yolo_plan::run::PredictTask;

use crate::detection::{LoadedModel, load_model};
use crate::error::TrainError;
use crate::model::Model;
use crate::rank::context::{Context, Ending};

/// Predicts on all pictures of the task.
///
/// # Errors
/// When the weights cannot be read or do not fit the options, or a file cannot be written.
pub(super) fn run(context: &Context, plan: &RunPlan, task: &PredictTask) -> Result<Ending, TrainError> {
    let began = Instant::now();
    let (models, names) = load(context, task)?;
    let outputs = Arc::new(write::Outputs::create(&plan.run_dir, task, names)?);
    if context.is_main() && (task.save || task.view_img.is_some()) && !task.hide_labels {
        outputs.warning().into_iter().for_each(|warning| context.reporter.warning(warning));
    }
    context.hold_stop_requests();
    context.reporter.phase("predicting");
    let done = search::Search::new(context, task, &models, Arc::clone(&outputs))?.run()?;
    let done = csv::of_all_ranks(context, &done)?;
    if context.is_main() {
        let files = results(plan, task, &outputs, &done)?;
        if done.complete {
            let seconds = began.elapsed().as_secs_f64();
            context.reporter.send(&Event::Finished { files, epochs: 0, seconds, stopped_early: false });
        } else {
            context.reporter.send(&Event::Kept { files });
            context.reporter.send(&Event::Interrupted { resume_from: None });
        }
    }
    Ok(if done.complete { Ending::Finished } else { Ending::Interrupted })
}

/// Writes the table, also of an interrupted run: a camera has no other end. Returns where results are, if there are
/// any.
fn results(
    plan: &RunPlan,
    task: &PredictTask,
    outputs: &write::Outputs,
    done: &csv::Done,
) -> Result<Vec<OutputFile>, TrainError> {
    if !done.any {
        return Ok(Vec::new());
    }
    let mut files = outputs.folders();
    if task.save_csv {
        let path = plan.run_dir.join("predictions.csv");
        csv::write(&path, &done.rows)?;
        files.push(OutputFile { what: "table".to_owned(), path });
    }
    Ok(files)
}

/// The model, or the models of an ensemble, and the names of their classes.
fn load(context: &Context, task: &PredictTask) -> Result<(Vec<Model>, Vec<String>), TrainError> {
    context.reporter.phase("reading the weights");
    let mut models: Vec<Model> = Vec::new();
    let mut names = None;
    for path in &task.weights {
        let LoadedModel { model, transfer, names: own } = load_model(path, context.device, task.half)?;
        let classes = model.spec().nc;
        if let Some(first) = models.first().map(|first| first.spec().nc).filter(|first| *first != classes) {
            let counted = |count| count_of(count, "class", "classes");
            return Err(TrainError::new(format!(
                "--weights: {} has {}, but {} has {}",
                task.weights[0].display(),
                counted(first),
                path.display(),
                counted(classes)
            ))
            .with_hint("an ensemble needs weights that were trained on the same classes"));
        }
        if context.is_main() {
            if transfer.matched < transfer.total {
                context.reporter.warning(format!("{}: {}", path.display(), transfer.summary()));
            }
            context.reporter.note(model.summary()?.to_string());
        }
        // As in YOLOv5, those of the first model count.
        names = names.or(own.filter(|own| own.len() == classes));
        models.push(model);
    }
    let classes = models.first().map_or(0, |model| model.spec().nc);
    let names = match names {
        Some(names) => names,
        None if task.names.len() == classes => task.names.clone(),
        None => (0..classes).map(|class| format!("class{class}")).collect(),
    };
    let beyond: Vec<String> =
        (task.classes.iter().flatten()).filter(|class| **class >= classes).map(ToString::to_string).collect();
    if let (false, Some(path)) = (beyond.is_empty(), task.weights.first()) {
        return Err(TrainError::new(format!(
            "--classes {}: {} has {}, numbered from 0",
            list(&beyond),
            path.display(),
            count_of(classes, "class", "classes")
        ))
        .with_hint(format!("give numbers from 0 to {}", classes.saturating_sub(1))));
    }
    Ok((models, names))
}

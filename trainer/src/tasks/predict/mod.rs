//! `yolo predict`: a model looks for objects in the user's pictures and videos. Threads read pictures ahead of the network and
//! write results behind it. Several ranks share the pictures; each writes the files of its own, and rank 0 those of
//! all.

mod ahead;
mod csv;
mod films;
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
    let (model, names) = load(context, task)?;
    let outputs = Arc::new(write::Outputs::create(&plan.run_dir, task, names)?);
    context.hold_stop_requests();
    context.reporter.phase("predicting");
    let done = search::Search::new(context, task, &model, Arc::clone(&outputs))?.run()?;
    let Some(rows) = csv::of_all_ranks(context, done)? else {
        if context.is_main() {
            context.reporter.send(&Event::Interrupted { resume_from: None });
        }
        return Ok(Ending::Interrupted);
    };
    if context.is_main() {
        let mut files = outputs.folders();
        if task.save_csv {
            let path = plan.run_dir.join("predictions.csv");
            csv::write(&path, &rows)?;
            files.push(OutputFile { what: "table".to_owned(), path });
        }
        let seconds = began.elapsed().as_secs_f64();
        context.reporter.send(&Event::Finished { files, epochs: 0, seconds, stopped_early: false });
    }
    Ok(Ending::Finished)
}

/// The model, and the names of its classes.
fn load(context: &Context, task: &PredictTask) -> Result<(Model, Vec<String>), TrainError> {
    context.reporter.phase("reading the weights");
    let LoadedModel { model, transfer, names } = load_model(&task.weights, context.device, task.half)?;
    let classes = model.spec().nc;
    let names = match names {
        Some(names) if names.len() == classes => names,
        _ if task.names.len() == classes => task.names.clone(),
        _ => (0..classes).map(|class| format!("class{class}")).collect(),
    };
    let beyond: Vec<String> =
        (task.classes.iter().flatten()).filter(|class| **class >= classes).map(ToString::to_string).collect();
    if !beyond.is_empty() {
        return Err(TrainError::new(format!(
            "--classes {}: {} has {}, numbered from 0",
            list(&beyond),
            task.weights.display(),
            count_of(classes, "class", "classes")
        ))
        .with_hint(format!("give numbers from 0 to {}", classes.saturating_sub(1))));
    }
    if context.is_main() {
        if transfer.matched < transfer.total {
            context.reporter.warning(format!("{}: {}", task.weights.display(), transfer.summary()));
        }
        context.reporter.note(model.summary()?.to_string());
    }
    Ok((model, names))
}

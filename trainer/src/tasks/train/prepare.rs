//! Everything before the first step, in the order of the specification (spec §6): data, model and
//! weights, frozen layers, anchors, optimizer, moving average, rounding of the weights, and the
//! exchange with the other ranks.

use std::sync::Arc;

use yolo_base::format;
use yolo_data::scan::{Sample, Scan};
use yolo_plan::RunPlan;
use yolo_plan::report::RunReport;
use yolo_plan::run::{TrainTask, check_freeze};
use yolo_plan::schedule::Schedule;

use super::early_stopping::EarlyStopping;
use super::event_log::EventLog;
use super::training::Training;
use crate::autoanchor;
use crate::checkpoint::{Progress, read_resume};
use crate::error::TrainError;
use crate::model::Model;
use crate::rank::context::Context;
use crate::report::{ResultsFile, facts_of_split, plot_labels, unwritable_letters, write_hyp_and_opt};
use crate::training::{Rate, build_learner, build_model, open_val, read_split, train_loader};

/// Prepares the training of the plan.
pub(super) fn prepare<'a>(
    context: &'a Context,
    plan: &'a RunPlan,
    task: &'a TrainTask,
) -> Result<Training<'a>, TrainError> {
    // Weights are read first: a broken file is reported before a large data set is scanned.
    context.reporter.phase("reading the weights");
    let group = context.group.as_deref();
    let resume = task.resume.as_deref().map(|path| read_resume(path, group)).transpose()?;
    let weights = match &resume {
        None => task.weights.as_deref().map(torch_checkpoint::read).transpose()?,
        Some(_) => None,
    };
    let progress = resume.as_ref().map_or(Progress::START, |resume| resume.progress.clone());
    context.reporter.phase("reading labels");
    let mut report =
        (context.is_main() && task.plots && !task.evolve).then(|| RunReport::new(&task.data.names));
    if let (Some(report), Some(_)) = (&mut report, &task.resume) {
        report.spent = RunReport::spent_before(&plan.run_dir);
    }
    let mut reports = |split: &str, scan: &Scan| {
        let Some(report) = &mut report else { return };
        report.splits.push(facts_of_split(split, scan, task.data.names.len()));
    };
    let scan = read_split(context, task, "train", &task.data.train)?;
    reports("train", &scan);
    let samples: Arc<[Sample]> = scan.samples.into();

    context.reporter.phase("building the model");
    let model = build_model(context, task, weights.as_ref(), resume.as_ref())?;
    // The plan checks this itself if it has the model and not only weights.
    check_freeze(&task.freeze, model.spec().layers.len())?;
    let frozen = model.freeze(&task.freeze)?;
    if !frozen.is_empty() && context.is_main() {
        context.reporter.note(format!(
            "frozen: {} ({}), {}",
            format::count(task.freeze.len(), "layer"),
            task.freeze.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
            format::count(frozen.len(), "parameter tensor")
        ));
    }
    let stride = model.largest_stride();
    let mut loader = train_loader(context, task, Arc::clone(&samples), stride)?;
    loader.set_average_precisions(&progress.average_precisions);
    // The loader's threads work on the first batches while this thread prepares the rest.
    loader.prefetch(progress.epochs_done as u64, progress.batches_done);
    if resume.is_none() && task.autoanchor {
        fit_anchors(context, task, &model, &samples)?;
    }
    let learner = build_learner(context, task, model, resume.as_ref())?;
    loader.take_warnings().into_iter().for_each(|message| context.reporter.warning(message));

    let (batches, batch, nominal) = (loader.batches_per_epoch(), task.batch, task.nominal_batch);
    let schedule = Schedule::new(&task.hyp, task.epochs, batches, batch, nominal, task.cos_lr);
    let val = open_val(context, task, stride, loader.memory_to_come(), &mut |scan| reports("val", scan))?;
    if let Some(report) = &mut report {
        report.model = Some(learner.model().summary()?.to_string());
    }
    let mut results = None;
    if context.is_main() {
        // The GPU may not be able to compute in the precision of the plan.
        write_hyp_and_opt(plan, &TrainTask { precision: learner.precision(), ..task.clone() })?;
        if task.plots {
            if let Some(warning) = unwritable_letters(task.data.names.iter().map(String::as_str)) {
                context.reporter.warning(warning);
            }
            plot_labels(&samples, &task.data.names, &plan.run_dir.join("labels.svg"))?;
        }
        results = Some(ResultsFile::open(&plan.run_dir, progress.epochs_done)?);
    }
    let events = EventLog::open(context, plan, task, progress.epochs_done);
    let stopping = match progress.epochs_done {
        0 => EarlyStopping::new(task.patience),
        _ => EarlyStopping::resume(task.patience, progress.best_fitness, progress.best_epoch),
    };
    let (loader, rate) = (Some(loader), Rate::default());
    let training = Training {
        context,
        plan,
        task,
        learner,
        schedule,
        loader,
        val,
        results,
        stopping,
        progress,
        rate,
        report,
        events,
    };
    // A run that is killed has a report too.
    training.write_report()?;
    Ok(training)
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

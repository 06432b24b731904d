//! `yolo bench`: how many images per second a training run reaches, and where the time goes. It
//! measures training on the images of the data set, training on one batch that stays on the device,
//! the loader alone, and validation, each for some seconds after a warm-up. Nothing is written.

mod loader;
mod steps;
mod stopwatch;
mod stream;
mod validation;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use yolo_base::exit;
use yolo_base::format::count;
use yolo_data::scan::Sample;
use yolo_plan::RunPlan;
use yolo_plan::bench_report::Measurement;
use yolo_plan::event::Event;
use yolo_plan::run::{BenchPart, BenchTask};

use self::steps::Steps;
use self::stream::Stream;
use crate::error::TrainError;
use crate::model::Model;
use crate::rank::context::{Context, Ending};
use crate::training::{build_learner, build_model, open_val, read_split, train_loader};

/// Measures what the task asks for.
pub(crate) fn run(context: &Context, plan: &RunPlan, task: &BenchTask) -> Result<Ending, TrainError> {
    let began = Instant::now();
    end_at_once_when_asked_to()?;
    if context.asked_to_stop() {
        context.reporter.send(&Event::Interrupted { resume_from: None });
        return Ok(Ending::Interrupted);
    }
    let (training, time) = (&task.training, Duration::from_secs(task.seconds as u64));
    let weights = training.weights.as_deref().map(torch_checkpoint::read).transpose()?;
    context.reporter.phase("building the model");
    let model = build_model(context, training, weights.as_ref(), None)?;
    let stride = model.largest_stride();
    // Steps change the statistics of the model, so validation has its own.
    let fused = task.measures(BenchPart::Validation).then(|| model.fuse()).transpose()?;
    if task.parts != [BenchPart::Validation] {
        measure_training(context, plan, task, time, model)?;
    }
    if let Some(model) = fused {
        let mut split = open_val(context, plan, training, stride)?;
        report(context, validation::measure(context, training, time, &model, &mut split)?);
    }
    context.reporter.send(&Event::Finished {
        files: Vec::new(),
        epochs: 0,
        seconds: began.elapsed().as_secs_f64(),
        stopped_early: false,
    });
    Ok(Ending::Finished)
}

/// Measures all that needs the training split.
fn measure_training(
    context: &Context,
    plan: &RunPlan,
    task: &BenchTask,
    time: Duration,
    model: Model,
) -> Result<(), TrainError> {
    let training = &task.training;
    context.reporter.phase("reading labels");
    let samples: Arc<[Sample]> = read_split(context, training, "train", &training.data.train)?.samples.into();
    if task.measures(BenchPart::Training) && samples.len() < training.batch {
        context.reporter.warning(smaller_steps(samples.len(), training.batch));
    }
    let loader = train_loader(context, plan, training, samples, model.largest_stride())?;
    loader.take_warnings().into_iter().for_each(|message| context.reporter.warning(message));
    let mut stream = Stream::new(loader);
    context.reporter.phase("loading images for the first time");
    // A cache is filled before its effect is measured, however long it takes.
    stream.warm_up(if training.cache.is_some() { Duration::MAX } else { time })?;

    if task.measures(BenchPart::Training) || task.measures(BenchPart::Synthetic) {
        let learner = build_learner(context, training, model, None)?;
        let mut steps = Steps::new(context, training, learner, time);
        if task.measures(BenchPart::Training) {
            context.reporter.phase("measuring training");
            report(context, steps.on_files(&mut stream, training.workers)?);
        }
        if task.measures(BenchPart::Synthetic) {
            context.reporter.phase("measuring training on a synthetic batch");
            report(context, steps.on_one_batch(&mut stream, training.batch)?);
        }
    }
    if task.measures(BenchPart::Loader) {
        for workers in loader::thread_counts(training.workers) {
            context.reporter.phase(&format!("measuring the loader with {}", count(workers, "thread")));
            stream = stream.with_workers(workers)?;
            report(context, loader::measure(&mut stream, workers, time)?);
        }
    }
    Ok(())
}

/// Why training on files is not measured with the batch that was asked for.
fn smaller_steps(images: usize, batch: usize) -> String {
    format!(
        "the training split has {}, less than a batch of {batch}, so training on files is measured with smaller batches",
        count(images, "image")
    )
}

fn report(context: &Context, measurement: Measurement) {
    context.reporter.send(&Event::BenchMeasured { measurement });
}

/// From now on, SIGINT and SIGTERM end this process at once: there is nothing to save.
fn end_at_once_when_asked_to() -> Result<(), TrainError> {
    let always = Arc::new(AtomicBool::new(true));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let status = exit::INTERRUPTED.into();
        signal_hook::flag::register_conditional_shutdown(signal, status, Arc::clone(&always))
            .map_err(|error| TrainError::new(format!("cannot handle signals: {error}")))?;
    }
    Ok(())
}

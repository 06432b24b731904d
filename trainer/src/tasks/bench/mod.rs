//! `yolo bench`: how many images per second a training run reaches, and where the time goes. It
//! measures training on the images of the data set, training on one batch that stays on the device,
//! the loader alone, and validation, each for some seconds after a warm-up. For a row of a table, all ranks
//! measure together. For `yolo train --batch -1`, it measures memory instead. Nothing is written, so a request to stop ends it at once.

mod loader;
mod memory;
mod numbers;
mod steps;
mod stopwatch;
mod stream;
mod together;
mod validation;

use std::sync::Arc;
use std::time::{Duration, Instant};

use yolo_base::format::count;
use yolo_data::scan::Sample;
use yolo_plan::bench_report::Measurement;
use yolo_plan::bench_workers;
use yolo_plan::event::Event;
use yolo_plan::options::Cache;
use yolo_plan::run::{BenchPart, BenchTask};

use self::steps::Steps;
use self::stream::{Stream, whole_batches};
use crate::error::TrainError;
use crate::model::Model;
use crate::rank::context::{Context, Ending};
use crate::training::{build_learner, build_model, open_val, read_split, train_loader};

/// The stages of a loader are measured for this part of the time of other measurements.
const STAGES_SHARE: u32 = 4;

/// Measures what the task asks for.
pub(crate) fn run(context: &Context, task: &BenchTask) -> Result<Ending, TrainError> {
    let began = Instant::now();
    let (training, time) = (&task.training, Duration::from_secs(task.seconds as u64));
    let weights = training.weights.as_deref().map(torch_checkpoint::read).transpose()?;
    context.reporter.phase("building the model");
    let model = build_model(context, training, weights.as_ref(), None)?;
    let stride = model.largest_stride();
    if task.measures(BenchPart::Memory) {
        report(context, Measurement::Memory(memory::measure(context, training, model)?));
        return finished(context, began);
    }
    // Steps change the statistics of the model, so validation has its own.
    let fused = task.measures(BenchPart::Validation).then(|| model.fuse()).transpose()?;
    if task.rounds > 0 {
        let measured = together::measure(context, task, time, model, fused)?;
        // All ranks know it, and one reports it.
        if context.is_main() {
            report(context, Measurement::Together(measured));
        }
        return finished(context, began);
    }
    if task.parts != [BenchPart::Validation] {
        measure_training(context, task, time, model)?;
    }
    if let Some(model) = fused {
        let mut split = open_val(context, training, stride, 0, &mut |_| ())?;
        report(context, validation::measure(context, training, time, &model, &mut split)?);
    }
    finished(context, began)
}

fn finished(context: &Context, began: Instant) -> Result<Ending, TrainError> {
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
    task: &BenchTask,
    time: Duration,
    model: Model,
) -> Result<(), TrainError> {
    let training = &task.training;
    context.reporter.phase("reading labels");
    let mut samples = read_split(context, training, "train", &training.data.train)?.samples;
    if task.measures(BenchPart::Training) && samples.len() < training.batch {
        context.reporter.warning(smaller_steps(samples.len(), training.batch));
    }
    samples.truncate(whole_batches(samples.len(), training.batch));
    let samples: Arc<[Sample]> = samples.into();
    let loader = train_loader(context, training, samples, model.largest_stride())?;
    loader.take_warnings().into_iter().for_each(|message| context.reporter.warning(message));
    let mut stream = Stream::new(loader);
    context.reporter.phase("loading images for the first time");
    // A cache is filled before its effect is measured, however long it takes.
    stream.warm_up(if training.cache.is_some_and(Cache::keeps_all) { Duration::MAX } else { time })?;

    let mut network = None;
    if task.measures(BenchPart::Training) || task.measures(BenchPart::Synthetic) {
        let learner = build_learner(context, training, model, None)?;
        let mut steps = Steps::new(context, training, learner, time)?;
        if task.measures(BenchPart::Training) {
            context.reporter.phase("measuring training");
            report(context, steps.on_files(&mut stream, training.workers)?);
        }
        if task.measures(BenchPart::Synthetic) {
            context.reporter.phase("measuring training on a synthetic batch");
            let measured = steps.on_one_batch(&mut stream, training.batch)?;
            network = measured.network();
            report(context, measured);
        }
    }
    if task.measures(BenchPart::Loader) {
        measure_loaders(context, task, time, stream, network)?;
    }
    Ok(())
}

/// Measures the loader with more and more threads: up to those of training, or only until they suffice for
/// a network that takes `network` images per second. Or with those of training alone.
fn measure_loaders(
    context: &Context,
    task: &BenchTask,
    time: Duration,
    mut stream: Stream,
    network: Option<f64>,
) -> Result<(), TrainError> {
    let most = task.training.workers;
    let mut measured = Vec::new();
    let counts = if task.most_workers { vec![most] } else { loader::thread_counts(most) };
    for workers in counts {
        if task.choose_workers && bench_workers::next(&measured, network, most) != Some(workers) {
            break;
        }
        context.reporter.phase(&format!("measuring the loader with {}", count(workers, "thread")));
        stream = stream.with_workers(workers)?;
        let rate = loader::measure(&mut stream, time)?;
        measured.push((workers, rate.images_per_second));
        // A choice of threads needs their speed only.
        let stages = (!task.choose_workers)
            .then(|| loader::stages(&mut stream, workers, context.device, time / STAGES_SHARE))
            .transpose()?;
        report(context, Measurement::Loader { workers, rate, stages });
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

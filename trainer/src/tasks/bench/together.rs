//! What all ranks of a run reach together, for a row of a table: training in several rounds, the memory
//! that it needs, and validation.

use std::sync::Arc;
use std::time::Duration;

use yolo_base::format::count;
use yolo_data::scan::Sample;
use yolo_plan::bench_report::Together;
use yolo_plan::options::Cache;
use yolo_plan::run::{BenchPart, BenchTask};

use super::memory::peak_memory;
use super::steps::Steps;
use super::stream::{Stream, whole_batches};
use super::{numbers, validation};
use crate::error::TrainError;
use crate::model::Model;
use crate::rank::context::Context;
use crate::training::{build_learner, open_val, read_split, train_loader};

/// Measures training of `model`, and validation of `fused` if there is one.
pub(super) fn measure(
    context: &Context,
    task: &BenchTask,
    time: Duration,
    model: Model,
    fused: Option<Model>,
) -> Result<Together, TrainError> {
    let training = &task.training;
    let stride = model.largest_stride();
    context.reporter.phase("reading labels");
    let mut samples = read_split(context, training, "train", &training.data.train)?.samples;
    let training_images = samples.len();
    let synthetic = task.measures(BenchPart::Synthetic);
    if !synthetic && training_images < training.batch {
        return Err(TrainError::new(format!(
            "the training split has {}, less than a batch of {}",
            count(training_images, "image"),
            training.batch
        ))
        .with_hint("measure smaller batches, or training without the loader (--synthetic)"));
    }
    samples.truncate(whole_batches(training_images, training.batch));
    let samples: Arc<[Sample]> = samples.into();
    let mut stream = Stream::new(train_loader(context, training, samples, stride)?);
    context.reporter.phase("loading images for the first time");
    stream.warm_up(if training.cache.is_some_and(Cache::keeps_all) { Duration::MAX } else { time })?;
    stream.go_to_epoch(1);

    let learner = build_learner(context, training, model, None)?;
    let mut steps = Steps::new(context, training, learner, time)?;
    context.reporter.phase("measuring training");
    let rates = match synthetic {
        true => {
            let share = training.shares(context.world)[context.rank];
            steps.on_one_batch_together(context, &mut stream, share, task.rounds)?
        }
        false => steps.on_files_together(context, &mut stream, task.rounds)?,
    };
    let memory = numbers::of_all(context, peak_memory(context.device)? as usize)?;
    let mut measured = Together {
        training: rates,
        training_images,
        validation: Vec::new(),
        validation_images: 0,
        memory: memory.into_iter().map(|bytes| bytes as u64).collect(),
    };
    drop((steps, stream));
    if let Some(model) = fused {
        let mut split = open_val(context, training, stride, 0, &mut |_| ())?;
        measured.validation_images = split.samples.len();
        measured.validation = validation::measure_together(context, task, time, &model, &mut split)?;
    }
    Ok(measured)
}

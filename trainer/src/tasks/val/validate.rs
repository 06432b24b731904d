//! One pass over a split: batches from the loader go through the model, then through suppression and matching with
//! the labels on other threads. Training calls it after each epoch, with its loss;
//! `yolo val` calls it with the user's options.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tch::{Device, Kind, Tensor, no_grad};
use tch_distributed::ProcessGroup;
use tch_train::Moment;
use yolo_data::loader::{Recycler, ValLoader};
use yolo_data::scan::Sample;

use super::options::ValidateOptions;
use super::post_processing::{Pending, PostProcessing, Processed, ProcessedImage};
use super::tally::{Tally, Validation};
use crate::detection::{ImageResult, forward};
use crate::error::TrainError;
use crate::loss::DetectionLoss;
use crate::model::{Ahead, Model, copied_ahead, copied_in_turn};
use crate::rank::context::Context;

/// A split to validate on.
pub struct Split {
    /// Its images with their labels.
    pub samples: Arc<[Sample]>,
    /// The loader of those samples, or of this rank's batches of them.
    pub loader: ValLoader,
    /// The ranks that share the batches; `None` if this one has them all.
    pub group: Option<Rc<ProcessGroup>>,
}

impl Split {
    /// Reports what the loader has noticed since the last call.
    pub(crate) fn warn(&self, context: &Context) {
        self.loader.take_warnings().into_iter().for_each(|message| context.reporter.warning(message));
    }
}

/// What happens to each batch, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The loader returns it.
    Load,
    /// Its images are copied to the device and scaled to 0..1.
    Preprocess,
    /// The model runs, and its outputs are copied back.
    Inference,
    /// Suppression, and the comparison with the labels. Of the batch before, with [`ValidateOptions::overlap`];
    /// the rest of its time is within the other stages.
    Nms,
}

/// Follows a validation.
pub trait Observer {
    /// Sees the detections of each image of this rank.
    ///
    /// # Errors
    /// Ends the validation.
    fn image(&mut self, _image: &ImageResult<'_>) -> Result<(), TrainError> {
        Ok(())
    }

    /// Is called at the end of each stage of each batch, or of a part of it. The device may still be working.
    fn stage_done(&mut self, _stage: Stage) {}

    /// Is called after each batch with the number of batches done and of all batches of this rank.
    /// Returns whether to continue.
    fn batch_done(&mut self, done: usize, batches: usize) -> bool;
}

/// Runs a model over a split, or several as an ensemble, which have the same classes. With several ranks, each runs over its batches, and all return the same:
/// the result of one rank over all batches, or `None` if an observer stopped it.
///
/// # Errors
/// When an image cannot be loaded, memory runs out, the observer fails, or a peer is lost.
pub fn validate(
    models: &[Model],
    split: &mut Split,
    names: &[String],
    options: &ValidateOptions,
    loss: Option<&DetectionLoss>,
    observer: &mut dyn Observer,
) -> Result<Option<Validation>, TrainError> {
    let classes = models.first().map_or(0, |model| model.spec().nc);
    let mut tally = Tally::new(classes);
    let complete = run_over(&mut tally, models, classes, split, options, loss, observer)?;
    let tally = match &split.group {
        Some(group) => Tally::of_all_ranks(group, complete.then_some(tally), classes)?,
        None => complete.then_some(tally),
    };
    Ok(tally.map(|tally| tally.finish(names)))
}

/// Runs over this rank's batches. Returns whether it has done all of them.
fn run_over(
    tally: &mut Tally,
    models: &[Model],
    classes: usize,
    split: &mut Split,
    options: &ValidateOptions,
    loss: Option<&DetectionLoss>,
    observer: &mut dyn Observer,
) -> Result<bool, TrainError> {
    let post_processing = PostProcessing::start(options.threads, classes, options)?;
    let batches = split.loader.batches();
    let numbers: Vec<usize> = (0..batches).map(|index| split.loader.number(index)).collect();
    let mut results = Results {
        tally,
        recycler: split.loader.recycler(),
        samples: &split.samples,
        options,
        done: 0,
        batches,
    };
    let mut in_work: Option<(usize, Pending)> = None;
    let device = models.first().map_or(Device::Cpu, Model::device);
    let run = |ahead: &mut Ahead<'_>| {
        for number in numbers {
            let mut began = Instant::now();
            let taken = &mut || {
                observer.stage_done(Stage::Load);
                began = Instant::now();
            };
            let Some((batch, images)) = ahead.next(taken)? else { break };
            let input = if options.half { images.f_to_kind(Kind::Half)? } else { images };
            observer.stage_done(Stage::Preprocess);
            let (prepared, begun) = (Instant::now(), Moment::of(device).ok());
            let outputs = forward(models, &input, options.augment)?;
            if let (Some(loss), Some(heads)) = (loss, &outputs.heads) {
                let items = no_grad(|| loss.compute(&in_float(heads)?, &batch.targets))?.items;
                results.tally.add_losses(number, &items)?;
            }
            let computed = Moment::of(device).ok();
            let rows = outputs.rows(options.nms.conf_thres)?;
            observer.stage_done(Stage::Inference);
            // The GPU runs behind the host, so its own clock tells.
            let of_gpu = begun.zip(computed).and_then(|(begun, computed)| begun.until(&computed).ok());
            let inference = of_gpu.unwrap_or_else(|| prepared.elapsed());
            results.tally.add_times([prepared - began, inference, Duration::ZERO]);
            let pending = post_processing.begin(batch, rows);
            let finished =
                if options.overlap { in_work.replace((number, pending)) } else { Some((number, pending)) };
            if let Some((number, pending)) = finished
                && !results.add(number, pending, observer)?
            {
                return Ok(false);
            }
        }
        match in_work {
            Some((number, pending)) => results.add(number, pending, observer),
            None => Ok(true),
        }
    };
    let (halt, has_threads) = (split.loader.halt(), split.loader.has_threads());
    let loaded = split.loader.iter();
    // The times of the stages would otherwise lack what the thread does.
    match options.overlap && has_threads {
        true => copied_ahead(device, &halt, loaded, run),
        false => copied_in_turn(device, loaded, run),
    }
}

/// The heads in single precision, in which losses are computed.
fn in_float(heads: &[Tensor]) -> Result<Vec<Tensor>, TrainError> {
    heads
        .iter()
        .map(|head| {
            Ok(if head.kind() == Kind::Half { head.f_to_kind(Kind::Float)? } else { head.shallow_clone() })
        })
        .collect()
}

/// Where the results of batches go, in their order.
struct Results<'a> {
    tally: &'a mut Tally,
    recycler: Recycler,
    samples: &'a [Sample],
    options: &'a ValidateOptions,
    done: usize,
    batches: usize,
}

impl Results<'_> {
    /// Waits for a batch and adds its images. Returns whether to continue.
    fn add(
        &mut self,
        number: usize,
        pending: Pending,
        observer: &mut dyn Observer,
    ) -> Result<bool, TrainError> {
        let Processed { batch, images, time } = pending.wait()?;
        for (index, ProcessedImage { found, truths, hits }) in images.iter().enumerate() {
            let item = &batch.items[index];
            self.tally.add_image(number, found, truths, hits);
            if self.options.keep_detections {
                self.tally.keep(number, item.sample, found);
            }
            observer.image(&ImageResult {
                sample: &self.samples[item.sample],
                native: item.native,
                detections: found,
                truths,
                batch: &batch,
                batch_number: number,
                index,
            })?;
        }
        observer.stage_done(Stage::Nms);
        self.tally.add_times([Duration::ZERO, Duration::ZERO, time]);
        self.recycler.give(batch.pixels);
        self.done += 1;
        Ok(observer.batch_done(self.done, self.batches))
    }
}

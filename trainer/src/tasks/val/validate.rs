//! One pass over a split: batches from the loader go through the model and suppression, and the
//! detections are matched with the labels. Training calls it after each epoch, with its loss;
//! `yolo val` calls it with the user's options.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use tch::no_grad;
use tch_distributed::ProcessGroup;
use yolo_data::loader::{Batch, ValLoader};
use yolo_data::scan::Sample;

use super::tally::{Tally, Validation};
use crate::detection::{
    Corners, Detection, ImageResult, NmsSettings, Truth, corners, find_objects, forward, input_tensor,
    to_native,
};
use crate::error::TrainError;
use crate::loss::DetectionLoss;
use crate::model::Model;

/// A split to validate on.
pub struct Split {
    /// Its images with their labels.
    pub samples: Arc<[Sample]>,
    /// The loader of those samples, or of this rank's batches of them.
    pub loader: ValLoader,
    /// The ranks that share the batches; `None` if this one has them all.
    pub group: Option<Rc<ProcessGroup>>,
}

/// How a split is validated.
#[derive(Debug, Clone)]
pub struct ValidateOptions {
    /// Suppression of each image.
    pub nms: NmsSettings,
    /// Treat all classes as one.
    pub single_cls: bool,
    /// Half precision; the model and the device must support it.
    pub half: bool,
    /// Test-time augmentation.
    pub augment: bool,
    /// Labels enter suppression as detections (`--save-hybrid`).
    pub hybrid: bool,
    /// The result has the detections of each image.
    pub keep_detections: bool,
}

impl ValidateOptions {
    /// The options of YOLOv5's validation (spec §9): confidence 0.001, IoU 0.6, several classes per
    /// box, 300 detections per image.
    pub fn standard(single_cls: bool) -> Self {
        Self {
            nms: NmsSettings {
                conf_thres: 0.001,
                iou_thres: 0.6,
                multi_label: true,
                agnostic: single_cls,
                classes: None,
                max_det: 300,
            },
            single_cls,
            half: false,
            augment: false,
            hybrid: false,
            keep_detections: false,
        }
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
    /// Suppression, and the comparison with the labels.
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

    /// Is called at the end of each stage of each batch. The device may still be working.
    fn stage_done(&mut self, _stage: Stage) {}

    /// Is called after each batch with the number of batches done and of all batches of this rank.
    /// Returns whether to continue.
    fn batch_done(&mut self, done: usize, batches: usize) -> bool;
}

/// Runs `model` over a split. With several ranks, each runs over its batches, and all return the same:
/// the result of one rank over all batches, or `None` if an observer stopped it.
///
/// # Errors
/// When an image cannot be loaded, memory runs out, the observer fails, or a peer is lost.
pub fn validate(
    model: &Model,
    split: &mut Split,
    names: &[String],
    options: &ValidateOptions,
    loss: Option<&DetectionLoss>,
    observer: &mut dyn Observer,
) -> Result<Option<Validation>, TrainError> {
    let mut tally = Tally::new(model.spec().nc);
    let complete = run_over(&mut tally, model, split, options, loss, observer)?;
    let tally = match &split.group {
        Some(group) => Tally::of_all_ranks(group, complete.then_some(tally), model.spec().nc)?,
        None => complete.then_some(tally),
    };
    Ok(tally.map(|tally| tally.finish(names)))
}

/// Runs over this rank's batches. Returns whether it has done all of them.
fn run_over(
    tally: &mut Tally,
    model: &Model,
    split: &mut Split,
    options: &ValidateOptions,
    loss: Option<&DetectionLoss>,
    observer: &mut dyn Observer,
) -> Result<bool, TrainError> {
    let batches = split.loader.batches();
    let recycler = split.loader.recycler();
    let numbers: Vec<usize> = (0..batches).map(|index| split.loader.number(index)).collect();
    for (done, (number, batch)) in (1..).zip(numbers.into_iter().zip(split.loader.iter())) {
        let batch = batch?;
        tally.start_batch(number);
        observer.stage_done(Stage::Load);
        let began = Instant::now();
        let input = input_tensor(model, &batch, options.half)?;
        observer.stage_done(Stage::Preprocess);
        let prepared = Instant::now();
        let outputs = forward(model, &input, options.augment)?;
        if let (Some(loss), Some(heads)) = (loss, &outputs.heads) {
            let items = no_grad(|| loss.compute(heads, &batch.targets))?.items;
            tally.add_losses(&items)?;
        }
        let rows = outputs.rows()?;
        observer.stage_done(Stage::Inference);
        let inferred = Instant::now();
        let numbers_per_image = rows.len() / batch.items.len().max(1);
        for (index, rows) in rows.chunks_exact(numbers_per_image.max(1)).enumerate() {
            let (found, truths) = detect(rows, &batch, index, model.spec().nc, options);
            let item = &batch.items[index];
            tally.add_image(&found, &truths);
            if options.keep_detections {
                tally.keep(item.sample, &found);
            }
            observer.image(&ImageResult {
                sample: &split.samples[item.sample],
                native: item.native,
                detections: &found,
                batch: &batch,
                batch_number: number,
                index,
            })?;
        }
        observer.stage_done(Stage::Nms);
        tally.add_times([prepared - began, inferred - prepared, inferred.elapsed()]);
        recycler.give(batch.pixels);
        if !observer.batch_done(done, batches) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The detections and the labels of one image, both in pixels of the image file.
fn detect(
    rows: &[f32],
    batch: &Batch,
    index: usize,
    classes: usize,
    options: &ValidateOptions,
) -> (Vec<Detection>, Vec<Truth>) {
    let item = &batch.items[index];
    let mut truths = labels_of(batch, index, options.single_cls);
    let known: Vec<(usize, Corners)> = if options.hybrid {
        truths.iter().map(|truth| (truth.class, truth.corners)).collect()
    } else {
        Vec::new()
    };
    let mut found = find_objects(rows, classes, item, &known, &options.nms);
    if options.single_cls {
        found.iter_mut().for_each(|detection| detection.class = 0);
    }
    for truth in &mut truths {
        truth.corners = to_native(truth.corners, item.ratio, item.pad, item.native);
    }
    (found, truths)
}

/// The labels of one image of a batch, in pixels of the batch.
fn labels_of(batch: &Batch, index: usize, single_cls: bool) -> Vec<Truth> {
    let (width, height) = (batch.width as f32, batch.height as f32);
    batch
        .targets
        .iter()
        .filter(|target| target[0] as usize == index)
        .map(|&[_, class, x, y, w, h]| Truth {
            corners: corners([x * width, y * height, w * width, h * height]),
            class: if single_cls { 0 } else { class as usize },
        })
        .collect()
}

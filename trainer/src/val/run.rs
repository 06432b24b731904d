//! The pass over a split: batches from the loader through the model and suppression to judged
//! detections, summed up at the end. Training calls it after each epoch with its loss; `yolo val`
//! calls it with options of its own.

use std::time::Instant;

use tch::{Device, Kind, Tensor};
use yolo_data::loader::{Batch, ValLoader};
use yolo_data::scan::Sample;
use yolo_plan::event::{Metrics, ValRow, ValTable};

use super::augmented::forward_augmented;
use super::{ClassScore, ConfusionMatrix, Detection, Judged, NmsSettings, Truth};
use super::{corners, match_image, score, suppress, to_native};
use crate::error::TrainError;
use crate::loss::DetectionLoss;
use crate::model::Model;

/// How a split is measured.
#[derive(Debug, Clone)]
pub struct ValSettings {
    /// Suppression of each image.
    pub nms: NmsSettings,
    /// All classes count as one.
    pub single_cls: bool,
    /// Half precision (CUDA only).
    pub half: bool,
    /// Three scales and a mirror image (test-time augmentation).
    pub augment: bool,
    /// Labels enter suppression as detections (`--save-hybrid`).
    pub hybrid: bool,
}

impl ValSettings {
    /// The settings of YOLOv5's validation (spec §9): confidence 0.001, IoU 0.6, several labels a
    /// box, 300 detections an image.
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
        }
    }
}

/// What a validation found.
#[derive(Debug, Clone)]
pub struct ValOutcome {
    /// The printed table.
    pub table: ValTable,
    /// The row `all`.
    pub metrics: Metrics,
    /// Mean box, objectness and class loss over the batches, when a loss was given.
    pub losses: Option<[f64; 3]>,
    /// Figures and curves of each class that has labels.
    pub scores: Vec<ClassScore>,
    /// What was taken for what.
    pub confusion: ConfusionMatrix,
}

/// The detections of one image in its own pixels, given to the caller as they come.
#[derive(Debug)]
pub struct ImageResult<'a> {
    /// The image.
    pub sample: &'a Sample,
    /// Its height and width in pixels.
    pub native: [u32; 2],
    /// What was found, most confident first.
    pub detections: &'a [Detection],
    /// The batch that the image came in.
    pub batch: &'a Batch,
    /// The number of that batch, from 0.
    pub batch_number: usize,
    /// The image's place in it.
    pub place: usize,
}

/// Runs `model` over the batches of `loader`, whose images are `samples`.
///
/// `watch` is called after each batch with the batches done; it ends the pass by an error.
/// `on_image` sees the detections of every image.
#[expect(clippy::too_many_arguments, reason = "one pass needs them all, and each call names them")]
pub fn validate(
    model: &Model,
    loader: &mut ValLoader,
    samples: &[Sample],
    names: &[String],
    settings: &ValSettings,
    loss: Option<&DetectionLoss>,
    watch: &mut dyn FnMut(usize, usize) -> Result<(), TrainError>,
    on_image: &mut dyn FnMut(&ImageResult<'_>) -> Result<(), TrainError>,
) -> Result<ValOutcome, TrainError> {
    let classes = model.spec().nc;
    let device = model.device();
    let mut tally = Tally::new(classes);
    let batches = loader.batches();
    let recycler = loader.recycler();
    for (index, batch) in loader.iter().enumerate() {
        let batch = batch?;
        let images = batch.items.len();
        let began = Instant::now();
        let input = images_tensor(&batch, device)?;
        let input = if settings.half { input.f_to_kind(Kind::Half)? } else { input };
        let prepared = Instant::now();
        let decoded = tch::no_grad(|| -> Result<Tensor, TrainError> {
            if settings.augment {
                return forward_augmented(model, &input);
            }
            let (decoded, heads) = model.forward_eval(&input)?;
            if let Some(loss) = loss {
                tally.add_losses(&loss.compute(&heads, &batch.targets)?.items)?;
            }
            Ok(decoded)
        })?;
        let decoded = decoded.f_to_device(Device::Cpu)?.f_to_kind(Kind::Float)?.f_contiguous()?;
        let inferred = Instant::now();
        let columns = 5 + classes;
        let numbers = Vec::<f32>::try_from(decoded.f_reshape([-1])?)?;
        let per_image = numbers.len() / images.max(1);
        for (image, item) in batch.items.iter().enumerate() {
            let truths = truths(&batch, image, settings.single_cls);
            let known: Vec<(usize, [f32; 4])> = if settings.hybrid {
                truths.iter().map(|truth| (truth.class, truth.corners)).collect()
            } else {
                Vec::new()
            };
            let rows = &numbers[image * per_image..(image + 1) * per_image];
            debug_assert_eq!(rows.len() % columns, 0);
            let mut found = suppress(rows, classes, &known, &settings.nms);
            let native = |corners| to_native(corners, item.ratio, item.pad, item.native);
            for detection in &mut found {
                detection.corners = native(detection.corners);
                if settings.single_cls {
                    detection.class = 0;
                }
            }
            let truths: Vec<Truth> =
                truths.iter().map(|truth| Truth { corners: native(truth.corners), ..*truth }).collect();
            tally.add_image(&found, &truths);
            on_image(&ImageResult {
                sample: &samples[item.sample],
                native: item.native,
                detections: &found,
                batch: &batch,
                batch_number: index,
                place: image,
            })?;
        }
        tally.add_times([prepared - began, inferred - prepared, inferred.elapsed()]);
        recycler.give(batch.pixels);
        watch(index + 1, batches)?;
    }
    Ok(tally.finish(names))
}

/// The images of a batch as (B, 3, H, W) from 0 to 1 on `device`.
pub fn images_tensor(batch: &Batch, device: Device) -> Result<Tensor, TrainError> {
    let shape = [batch.items.len() as i64, 3, batch.height as i64, batch.width as i64];
    let bytes = Tensor::f_from_data_size(&batch.pixels, &shape, Kind::Uint8)?;
    Ok(bytes.f_to_device(device)?.f_to_kind(Kind::Float)?.f_div_scalar_(255.0)?)
}

/// The labels of one image of a batch, in pixels of the batch.
fn truths(batch: &Batch, image: usize, single_cls: bool) -> Vec<Truth> {
    let (width, height) = (batch.width as f32, batch.height as f32);
    batch
        .targets
        .iter()
        .filter(|target| target[0] as usize == image)
        .map(|&[_, class, x, y, w, h]| Truth {
            corners: corners([x * width, y * height, w * width, h * height]),
            class: if single_cls { 0 } else { class as usize },
        })
        .collect()
}

/// Sums over a validation.
struct Tally {
    judged: Vec<Judged>,
    labels: Vec<usize>,
    images_with: Vec<usize>,
    images: usize,
    confusion: ConfusionMatrix,
    losses: [f64; 3],
    batches_with_loss: usize,
    seconds: [f64; 3],
}

impl Tally {
    fn new(classes: usize) -> Self {
        Self {
            judged: Vec::new(),
            labels: vec![0; classes],
            images_with: vec![0; classes],
            images: 0,
            confusion: ConfusionMatrix::new(classes),
            losses: [0.0; 3],
            batches_with_loss: 0,
            seconds: [0.0; 3],
        }
    }

    fn add_losses(&mut self, items: &Tensor) -> Result<(), TrainError> {
        let items = Vec::<f32>::try_from(items.f_to_device(Device::Cpu)?)?;
        for (sum, item) in self.losses.iter_mut().zip(items) {
            *sum += f64::from(item);
        }
        self.batches_with_loss += 1;
        Ok(())
    }

    fn add_image(&mut self, found: &[Detection], truths: &[Truth]) {
        self.images += 1;
        let mut present = vec![false; self.labels.len()];
        for truth in truths {
            self.labels[truth.class] += 1;
            present[truth.class] = true;
        }
        for (count, _) in self.images_with.iter_mut().zip(present).filter(|(_, present)| *present) {
            *count += 1;
        }
        let hits = match_image(found, truths);
        self.judged.extend(found.iter().zip(hits).map(|(detection, hits)| Judged {
            hits,
            confidence: detection.confidence,
            class: detection.class,
        }));
        // As in the original, images without labels leave the confusion matrix as it is.
        if !truths.is_empty() {
            self.confusion.add_image(found, truths);
        }
    }

    fn add_times(&mut self, times: [std::time::Duration; 3]) {
        for (sum, time) in self.seconds.iter_mut().zip(times) {
            *sum += time.as_secs_f64();
        }
    }

    fn finish(self, names: &[String]) -> ValOutcome {
        let scores = score(&self.judged, &self.labels);
        let mean = |pick: &dyn Fn(&ClassScore) -> f64| {
            if scores.is_empty() { 0.0 } else { scores.iter().map(pick).sum::<f64>() / scores.len() as f64 }
        };
        let metrics = Metrics {
            precision: mean(&|score| score.precision),
            recall: mean(&|score| score.recall),
            map50: mean(&ClassScore::ap50),
            map50_95: mean(&ClassScore::ap50_95),
        };
        let all = ValRow {
            class: "all".to_owned(),
            images: self.images,
            instances: self.labels.iter().sum(),
            metrics,
        };
        let rows = scores.iter().map(|score| ValRow {
            class: names.get(score.class).cloned().unwrap_or_else(|| format!("class {}", score.class)),
            images: self.images_with[score.class],
            instances: score.labels,
            metrics: Metrics {
                precision: score.precision,
                recall: score.recall,
                map50: score.ap50(),
                map50_95: score.ap50_95(),
            },
        });
        let per_image = self.seconds.map(|seconds| seconds * 1000.0 / self.images.max(1) as f64);
        let table = ValTable {
            rows: std::iter::once(all).chain(rows).collect(),
            speed_ms: per_image,
            images: self.images,
        };
        let losses =
            (self.batches_with_loss > 0).then(|| self.losses.map(|sum| sum / self.batches_with_loss as f64));
        ValOutcome { table, metrics, losses, scores, confusion: self.confusion }
    }
}

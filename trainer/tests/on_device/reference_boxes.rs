//! From raw heads to boxes, and from detections to metrics, once more: decoding in plain tch operations
//! and double precision, and a validation that asks the model directly. Suppression, matching and the area under
//! the curve are plain Rust on the CPU, on any device, so both sides share them.

use std::sync::Arc;

use tch::{Device, Kind, Tensor, no_grad};
use yolo_data::loader::Batch;
use yolo_data::scan::Sample;
use yolo_plan::event::Metrics;
use yolo_trainer::detection::{Detection, NmsSettings, Suppressor, Truth, corners, find_objects};
use yolo_trainer::metrics::{ClassScore, Judged, match_image, score};
use yolo_trainer::model::Model;

use crate::compare::double;
use crate::reference_loss::items;
use crate::scenes::{images_in_double, loader};

/// Boxes in pixels with probabilities, (B, N, 5 + classes), of the heads of `model`.
pub(crate) fn decode(model: &Model, heads: &[Tensor]) -> Tensor {
    let anchors = double(model.anchors().unwrap());
    let levels = (0..).zip(heads).zip(model.strides()).map(|((level, head), &stride)| {
        let score = double(head).sigmoid();
        let size = score.size();
        let cells = |count: i64| Tensor::arange(count, (Kind::Double, Device::Cpu));
        let column = |index: i64| score.select(4, index) * 2.0;
        let side = |index: i64| anchors.get(level).select(1, index).reshape([1, -1, 1, 1]) * stride;
        let boxes = Tensor::stack(
            &[
                (column(0) - 0.5 + cells(size[3]).reshape([1, 1, 1, -1])) * stride,
                (column(1) - 0.5 + cells(size[2]).reshape([1, 1, -1, 1])) * stride,
                column(2).square() * side(0),
                column(3).square() * side(1),
            ],
            4,
        );
        Tensor::cat(&[boxes, score.narrow(4, 4, size[4] - 4)], 4).reshape([size[0], -1, size[4]])
    });
    Tensor::cat(&levels.collect::<Vec<_>>(), 1)
}

/// The decoded outputs of a model in double precision for a batch, and its heads.
pub(crate) fn outputs(exact: &Model, batch: &Batch) -> (Tensor, Vec<Tensor>) {
    no_grad(|| {
        let (_, heads) = exact.forward_eval(&images_in_double(batch)).unwrap();
        (decode(exact, &heads), heads)
    })
}

/// The rows of each image.
pub(crate) fn rows(decoded: &Tensor) -> Vec<Vec<f32>> {
    let image =
        |index: i64| Vec::<f32>::try_from(decoded.get(index).reshape([-1]).to_kind(Kind::Float)).unwrap();
    (0..decoded.size()[0]).map(image).collect()
}

/// The result of a validation.
pub(crate) struct Validated {
    pub(crate) metrics: Metrics,
    pub(crate) labels: usize,
    /// Means over the batches of box, objectness and class loss.
    pub(crate) losses: [f64; 3],
}

/// Validates a model in double precision on images in batches of `batch`.
pub(crate) fn validate(exact: &Model, samples: &Arc<[Sample]>, batch: usize, nms: &NmsSettings) -> Validated {
    let classes = exact.spec().nc;
    let (mut judged, mut labels, mut losses, mut batches) = (Vec::new(), vec![0; classes], [0.0; 3], 0.0);
    for batch in loader(samples, batch).iter() {
        let batch = batch.unwrap();
        let (decoded, heads) = outputs(exact, &batch);
        let parts = items(&heads, &batch.targets, exact.anchors().unwrap());
        for (sum, part) in losses.iter_mut().zip(Vec::<f64>::try_from(parts).unwrap()) {
            *sum += part;
        }
        batches += 1.0;
        for (item, rows) in batch.items.iter().zip(rows(&decoded)) {
            let truths = truths(&samples[item.sample]);
            truths.iter().for_each(|truth| labels[truth.class] += 1);
            let found: Vec<Detection> =
                find_objects(&mut Suppressor::default(), &rows, classes, item, &[], nms);
            let hits = match_image(&found, &truths);
            judged.extend(found.iter().zip(hits).map(|(found, hits)| Judged {
                hits,
                confidence: found.confidence,
                class: found.class,
            }));
        }
    }
    let scores = score(&judged, &labels);
    let mean = |of: fn(&ClassScore) -> f64| scores.iter().map(of).sum::<f64>() / scores.len() as f64;
    let metrics = Metrics {
        precision: mean(|score| score.precision),
        recall: mean(|score| score.recall),
        map50: mean(ClassScore::ap50),
        map50_95: mean(ClassScore::ap50_95),
    };
    Validated { metrics, labels: labels.iter().sum(), losses: losses.map(|sum| sum / batches) }
}

/// The labels of an image in its pixels.
fn truths(sample: &Sample) -> Vec<Truth> {
    let (width, height) = (sample.width as f32, sample.height as f32);
    let truth = |&[class, x, y, w, h]: &[f32; 5]| Truth {
        class: class as usize,
        corners: corners([x * width, y * height, w * width, h * height]),
    };
    sample.boxes.iter().map(truth).collect()
}

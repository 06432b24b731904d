//! Inference: decoded boxes, suppressed boxes, and the metrics of a validation.

use std::sync::Arc;

use tch::{Device, Tensor};
use yolo_data::scan::Sample;
use yolo_trainer::detection::{Detection, NmsSettings, Suppressor, find_objects, forward, iou, suppress};
use yolo_trainer::loss::DetectionLoss;
use yolo_trainer::model::{Model, images_tensor};
use yolo_trainer::tasks::val::{Observer, Split, ValidateOptions, validate};

use crate::compare::{Closest, device, largest};
use crate::models::{in_double, model, sharpen, twin};
use crate::reference_boxes::{self, decode, outputs, rows};
use crate::reference_loss::SETTINGS;
use crate::scenes::{Scenes, loader};

/// Rounding of one formula in float32, relative to the largest value.
const FORMULA: f64 = 1e-6;

/// Rounding through the whole network: of a coordinate relative to the largest one, and of a probability.
const NETWORK: f64 = 2e-4;

/// Largest difference of a metric. It is a step function of the order of the detections, which rounding
/// may change.
const METRIC: f64 = 2e-3;

/// Largest difference of a loss, relative to it.
const LOSS: f64 = 1e-4;

/// The same for a network in half precision, which has three digits.
const HALF_METRIC: f64 = 3e-2;
const HALF_LOSS: f64 = 1e-2;

/// Largest difference of a detection: of its confidence, and of its corners in pixels.
const CONFIDENCE: f32 = 2e-4;
const PIXELS: f32 = 0.1;

/// Candidates that enter suppression, over all images.
const CANDIDATES: usize = 400;

/// Settings of a prediction, with the confidence that this many candidates of `rows` exceed.
fn suppression(rows: &[Vec<f32>], classes: usize) -> NmsSettings {
    let scores = |row: &[f32]| row[5..].iter().map(|class| class * row[4]).collect::<Vec<f32>>();
    let mut scores: Vec<f32> =
        rows.iter().flat_map(|rows| rows.chunks_exact(5 + classes).flat_map(scores)).collect();
    scores.sort_by(|a, b| b.total_cmp(a));
    NmsSettings {
        conf_thres: scores[CANDIDATES],
        iou_thres: 0.45,
        multi_label: true,
        agnostic: false,
        classes: None,
        max_det: 300,
    }
}

/// The model and eight images.
fn prepared() -> (Model, Scenes) {
    let model = model();
    let scenes = Scenes::new(8, model.spec().nc);
    sharpen(&model, &images_tensor(&scenes.batch(), Device::Cpu).unwrap());
    (model, scenes)
}

/// Fails unless every detection of `found` that is clearly above the threshold is among `others`, or one
/// that suppresses it and is as confident: rounding may decide between two.
fn all_among(what: &str, found: &[Detection], others: &[Detection], nms: &NmsSettings) {
    for detection in found.iter().filter(|found| found.confidence > nms.conf_thres + CONFIDENCE) {
        let counterpart = |other: &Detection| {
            let near = |(a, b): (&f32, f32)| (a - b).abs() < PIXELS;
            other.class == detection.class
                && (other.confidence - detection.confidence).abs() < CONFIDENCE
                && (other.corners.iter().zip(detection.corners).all(near)
                    || f64::from(iou(other.corners, detection.corners)) > nms.iou_thres)
        };
        assert!(others.iter().any(counterpart), "{what}: {detection:?} has no counterpart");
    }
}

#[test]
fn boxes_are_decoded_and_suppressed_alike() {
    let (cpu, scenes) = prepared();
    let batch = scenes.batch();
    // Fused, as validation and prediction use it.
    let own = twin(&cpu, device()).fuse().unwrap();
    let got = forward(std::slice::from_ref(&own), &images_tensor(&batch, device()).unwrap(), false).unwrap();
    let exact = in_double(&cpu);
    let (want, _) = outputs(&exact, &batch);

    let parts = |tensor: &Tensor| (tensor.narrow(2, 0, 4), tensor.narrow(2, 4, tensor.size()[2] - 4));
    let (boxes, probabilities) = parts(&got.decoded);
    let (decoded_boxes, decoded_probabilities) = parts(&decode(&own, got.heads.as_ref().unwrap()));
    let mut closest = Closest::default();
    closest.check("boxes of the same heads", &boxes, &decoded_boxes, FORMULA * largest(&decoded_boxes));
    closest.check("probabilities of the same heads", &probabilities, &decoded_probabilities, FORMULA);
    closest.print();
    let (want_boxes, want_probabilities) = parts(&want);
    let mut closest = Closest::default();
    closest.check("boxes", &boxes, &want_boxes, NETWORK * largest(&want_boxes));
    closest.check("probabilities", &probabilities, &want_probabilities, NETWORK);
    closest.print();

    let classes = own.spec().nc;
    let want_rows = rows(&want);
    let nms = suppression(&want_rows, classes);
    let own_rows = got.rows(nms.conf_thres).unwrap();
    let mut kept = 0;
    for (index, (got, want)) in own_rows.images().zip(&want_rows).enumerate() {
        let (got, want) = (suppress(got, classes, &[], &nms), suppress(want, classes, &[], &nms));
        all_among(&format!("image {index}, detections of the device"), &got, &want, &nms);
        all_among(&format!("image {index}, detections of the reference"), &want, &got, &nms);
        kept += want.len();
    }
    println!("{kept} of {CANDIDATES} candidates were kept");
    assert!((8..CANDIDATES - 8).contains(&kept), "{kept} of {CANDIDATES} candidates were kept");
}

/// The images with labels that the model finds only in part: every second one of its most confident
/// detections, a little smaller.
fn labeled(exact: &Model, samples: &Arc<[Sample]>, nms: &NmsSettings) -> Arc<[Sample]> {
    let batch = loader(samples, samples.len()).iter().next().unwrap().unwrap();
    let (decoded, _) = outputs(exact, &batch);
    let label = |item, rows: Vec<f32>, sample: &Sample| {
        let (width, height) = (sample.width as f32, sample.height as f32);
        let found = find_objects(&mut Suppressor::default(), &rows, exact.spec().nc, item, &[], nms);
        let boxes = found.iter().step_by(2).take(8).map(|found| {
            let [left, top, right, bottom] = found.corners;
            let size = [0.9 * (right - left) / width, 0.9 * (bottom - top) / height];
            [
                found.class as f32,
                (left + right) / 2.0 / width,
                (top + bottom) / 2.0 / height,
                size[0],
                size[1],
            ]
        });
        Sample { boxes: boxes.filter(|label| label[3] > 0.02 && label[4] > 0.02).collect(), ..sample.clone() }
    };
    batch
        .items
        .iter()
        .zip(rows(&decoded))
        .map(|(item, rows)| label(item, rows, &samples[item.sample]))
        .collect()
}

/// Never stops a validation.
struct Patient;

impl Observer for Patient {
    fn batch_done(&mut self, _: usize, _: usize) -> bool {
        true
    }
}

/// How far a validation may be from the reference.
struct Bounds {
    metric: f64,
    loss: f64,
}

#[test]
fn validation_gives_the_same_metrics() {
    validated(false, &Bounds { metric: METRIC, loss: LOSS });
}

/// A CPU has half precision as well, though `yolo` does not use it.
#[test]
fn validation_in_half_precision_gives_nearly_the_same_metrics() {
    validated(true, &Bounds { metric: HALF_METRIC, loss: HALF_LOSS });
}

fn validated(half: bool, bounds: &Bounds) {
    /// Images per batch: the last batch is smaller.
    const BATCH: usize = 3;
    let (cpu, scenes) = prepared();
    let exact = in_double(&cpu);
    let options = ValidateOptions { half, ..ValidateOptions::standard(false, 2) };
    let samples = labeled(&exact, &scenes.samples, &options.nms);
    let want = reference_boxes::validate(&exact, &samples, BATCH, &options.nms);
    assert!(want.labels >= 8, "only {} labels", want.labels);
    assert!((0.1..0.99).contains(&want.metrics.map50), "{:?}", want.metrics);

    let own = twin(&cpu, device());
    let own = if half { own.fused_half() } else { own.fuse() }.unwrap();
    let loss = DetectionLoss::new(cpu.anchors().unwrap(), own.spec().nc, SETTINGS, device()).unwrap();
    let names: Vec<String> = (0..own.spec().nc).map(|class| format!("class {class}")).collect();
    let mut split = Split { loader: loader(&samples, BATCH), samples: Arc::clone(&samples), group: None };
    let got = validate(std::slice::from_ref(&own), &mut split, &names, &options, Some(&loss), &mut Patient)
        .unwrap()
        .unwrap();

    assert_eq!((got.table.images, got.table.rows[0].instances), (samples.len(), want.labels));
    let pairs = [
        ("precision", got.metrics.precision, want.metrics.precision),
        ("recall", got.metrics.recall, want.metrics.recall),
        ("mAP50", got.metrics.map50, want.metrics.map50),
        ("mAP50-95", got.metrics.map50_95, want.metrics.map50_95),
    ];
    for (name, got, want) in pairs {
        println!("{name}: {got}, in double precision {want}");
        assert!(
            (got - want).abs() <= bounds.metric,
            "{name}: the difference is {:e}, the bound {:e}",
            got - want,
            bounds.metric
        );
    }
    for ((name, got), want) in ["box", "objectness", "class"].iter().zip(got.losses.unwrap()).zip(want.losses)
    {
        let (off, bound) = ((got - want).abs(), bounds.loss * want);
        assert!(off <= bound, "{name} loss: the difference is {off:e}, the bound {bound:e}");
    }
}

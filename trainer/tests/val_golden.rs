//! Suppression, mapping to image pixels, matching, average precision and the confusion matrix,
//! compared with YOLOv5's results.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and says what it skips"
)]

mod support;

use std::path::Path;

use support::{committed, floats, golden, golden_or_committed, json, tensors};
use tch::Tensor;
use yolo_plan::event::Metrics;
use yolo_trainer::detection::{Detection, NmsSettings, Truth, iou, suppress, to_native};
use yolo_trainer::metrics::{ConfusionMatrix, IOU_THRESHOLDS, Judged, average_precision, match_image, score};

fn rows<const N: usize>(tensor: &Tensor) -> Vec<[f32; N]> {
    floats(tensor).chunks_exact(N).map(|row| row.try_into().unwrap()).collect()
}

/// The classes, thresholds and options of a recorded case.
fn settings_of(case: &serde_json::Value, hybrid: bool) -> NmsSettings {
    NmsSettings {
        conf_thres: case["conf_thres"].as_f64().unwrap_or(0.25) as f32,
        iou_thres: case["iou_thres"].as_f64().unwrap_or(0.45),
        multi_label: case["multi_label"].as_bool().unwrap_or(hybrid),
        agnostic: case["agnostic"].as_bool().unwrap_or(false),
        classes: case["classes"]
            .as_array()
            .map(|list| list.iter().map(|class| class.as_u64().unwrap() as usize).collect()),
        max_det: case["max_det"].as_u64().unwrap_or(300) as usize,
    }
}

/// Fails unless every detection of every case is YOLOv5's to the last bit, in its order.
fn keeps_the_recorded_boxes(numbers: &Path, cases: &Path) {
    let (all, cases) = (tensors(numbers), json(cases));
    for case in cases.as_array().unwrap() {
        let name = case["case"].as_u64().map_or("hybrid".to_owned(), |number| format!("case{number}"));
        let hybrid = name == "hybrid";
        let settings = settings_of(case, hybrid);
        let predictions = &all[case["src"].as_str().unwrap_or("pred")];
        let nc = predictions.size()[2] as usize - 5;
        for (image, count) in case["n"].as_array().unwrap().iter().enumerate() {
            // The hybrid case adds one label to the first image: class 2 at 100, 100, 50 by 60.
            let known = if hybrid && image == 0 { vec![(2, [75.0, 70.0, 125.0, 130.0])] } else { Vec::new() };
            let got = suppress(&floats(&predictions.get(image as i64)), nc, &known, &settings);
            assert_eq!(got.len() as u64, count.as_u64().unwrap(), "{name}, image {image}");
            let want = rows::<6>(&all[&format!("{name}.img{image}")]);
            for (index, (got, want)) in got.iter().zip(&want).enumerate() {
                let [left, top, right, bottom] = got.corners;
                let got = [left, top, right, bottom, got.confidence, got.class as f32];
                assert_eq!(got, *want, "{name}.{image}[{index}]");
            }
        }
    }
}

#[test]
fn suppression_keeps_the_same_boxes() {
    let (Some(numbers), Some(cases)) = (golden("e_nms.safetensors"), golden("e_nms.json")) else { return };
    keeps_the_recorded_boxes(&numbers, &cases);
}

/// With 80 classes, the last ones are compared 600,000 pixels away, where floats are 1/16 apart: some boxes stay
/// only for that reason.
#[test]
fn suppression_rounds_as_with_the_class_offset() {
    let [numbers, cases] = ["safetensors", "json"].map(|kind| committed(&format!("nms_80_classes.{kind}")));
    keeps_the_recorded_boxes(&numbers, &cases);
}

#[test]
fn overlaps_are_equal() {
    let all = tensors(&golden_or_committed("f_iou_ap.safetensors"));
    let corners = |name: &str| -> Vec<[f32; 4]> {
        rows::<4>(&all[name]).into_iter().map(yolo_trainer::detection::corners).collect()
    };
    let (a, b) = (corners("a_xywh"), corners("b_xywh"));
    let want = floats(&all["box_iou_matrix_xyxy"]);
    for (i, first) in a.iter().enumerate() {
        for (j, second) in b.iter().enumerate() {
            let (got, want) = (iou(*first, *second), want[i * b.len() + j]);
            assert!((got - want).abs() < 1e-5, "boxes {i} and {j}: {got}, YOLOv5 {want}");
        }
    }
    let wanted = floats(&all["iou"]);
    assert_eq!(wanted.len(), a.len());
    for ((first, second), want) in a.iter().zip(&b).zip(wanted) {
        assert!((iou(*first, *second) - want).abs() < 1e-5, "{first:?} and {second:?}: YOLOv5 {want}");
    }
}

/// The recorded example.
struct Example {
    /// The detections of each image, and their positions in the recorded list.
    found: Vec<(Vec<Detection>, Vec<usize>)>,
    /// The labels of each image.
    truths: Vec<Vec<Truth>>,
    /// Everything in the file.
    all: std::collections::HashMap<String, Tensor>,
}

fn example() -> Example {
    let all = tensors(&golden_or_committed("f_iou_ap.safetensors"));
    let image_of = |name: &str| Vec::<i64>::try_from(&all[name]).unwrap();
    let (of_prediction, of_label) = (image_of("ap.pred_image"), image_of("ap.label_image"));
    let images = of_prediction.iter().chain(&of_label).max().unwrap() + 1;
    let mut found: Vec<(Vec<Detection>, Vec<usize>)> = vec![Default::default(); images as usize];
    for (index, (row, image)) in
        rows::<6>(&all["ap.pred_xyxy_conf_cls"]).iter().zip(of_prediction).enumerate()
    {
        let detection = Detection {
            corners: [row[0], row[1], row[2], row[3]],
            confidence: row[4],
            class: row[5] as usize,
        };
        found[image as usize].0.push(detection);
        found[image as usize].1.push(index);
    }
    let mut truths: Vec<Vec<Truth>> = vec![Vec::new(); images as usize];
    for (row, image) in rows::<5>(&all["ap.labels_cls_xyxy"]).iter().zip(of_label) {
        truths[image as usize]
            .push(Truth { class: row[0] as usize, corners: [row[1], row[2], row[3], row[4]] });
    }
    Example { found, truths, all }
}

#[test]
fn hits_and_average_precision() {
    let Example { found, truths, all } = example();
    let hits = Vec::<u8>::try_from(all["ap.tp"].reshape([-1])).unwrap();
    let mut judged = Vec::new();
    for ((detections, indices), truths) in found.iter().zip(&truths) {
        for ((detection, index), own) in detections.iter().zip(indices).zip(match_image(detections, truths)) {
            let want: Vec<bool> = hits[index * 10..index * 10 + 10].iter().map(|hit| *hit != 0).collect();
            assert_eq!(own.to_vec(), want, "detection {index}");
            judged.push(Judged { hits: own, confidence: detection.confidence, class: detection.class });
        }
    }
    let mut labels = vec![0; 8];
    truths.iter().flatten().for_each(|truth| labels[truth.class] += 1);
    let scores = score(&judged, &labels);

    let want = json(&golden_or_committed("f_metrics.json"));
    let list = |key: &str| -> Vec<f64> {
        want[key].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
    };
    let near = |got: Vec<f64>, key: &str| {
        for (index, (got, want)) in got.iter().zip(list(key)).enumerate() {
            assert!((got - want).abs() < 1e-6, "{key}[{index}]: {got}, YOLOv5 {want}");
        }
    };
    assert_eq!(scores.iter().map(|score| score.class as f64).collect::<Vec<_>>(), list("classes"));
    near(scores.iter().map(|score| score.precision).collect(), "p");
    near(scores.iter().map(|score| score.recall).collect(), "r");
    near(scores.iter().map(|score| score.f1).collect(), "f1");
    near(scores.iter().map(|score| score.ap50()).collect(), "ap50");
    near(scores.iter().map(|score| score.ap50_95()).collect(), "ap50_95");
    // The same numbers as tensors.
    for (own, key) in [
        (scores.iter().map(|score| score.class as f64).collect::<Vec<_>>(), "ap.out_classes"),
        (scores.iter().map(|score| score.precision).collect(), "ap.out_p"),
        (scores.iter().map(|score| score.recall).collect(), "ap.out_r"),
        (scores.iter().map(|score| score.f1).collect(), "ap.out_f1"),
    ] {
        let recorded = Vec::<f64>::try_from(all[key].to_kind(tch::Kind::Double)).unwrap();
        assert_eq!(own.len(), recorded.len(), "{key}");
        assert!(
            own.iter().zip(&recorded).all(|(own, recorded)| (own - recorded).abs() < 1e-6),
            "{key}: {own:?}"
        );
    }

    let number = |key: &str| want[key].as_f64().unwrap();
    assert_eq!(
        (judged.len(), labels.iter().sum::<usize>()),
        (number("n_pred") as usize, number("n_labels") as usize)
    );
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    let metrics = Metrics {
        precision: mean(scores.iter().map(|score| score.precision).collect()),
        recall: mean(scores.iter().map(|score| score.recall).collect()),
        map50: mean(scores.iter().map(|score| score.ap50()).collect()),
        map50_95: mean(scores.iter().map(|score| score.ap50_95()).collect()),
    };
    let means = [
        (metrics.precision, "mp"),
        (metrics.recall, "mr"),
        (metrics.map50, "map50"),
        (metrics.map50_95, "map"),
        (metrics.fitness(), "fitness"),
    ];
    for (got, key) in means {
        assert!((got - number(key)).abs() < 1e-6, "{key}: {got}, YOLOv5 {}", number(key));
    }

    // True and false positives follow from precision, recall and the number of labels.
    let (positives, negatives) = (floats(&all["ap.out_tp"]), floats(&all["ap.out_fp"]));
    for (score, (tp, fp)) in scores.iter().zip(positives.into_iter().zip(negatives)) {
        let found = (score.recall * score.labels as f64).round_ties_even();
        assert_eq!(found as f32, tp, "class {}", score.class);
        assert_eq!((found / (score.precision + 1e-16) - found).round_ties_even() as f32, fp);
    }
    let found = scores.iter().flat_map(|score| score.ap);
    for (got, want) in found.zip(floats(&all["ap.out_ap"])) {
        assert!((got - f64::from(want)).abs() < 1e-6, "{got}, YOLOv5 {want}");
    }
}

#[test]
fn thresholds_and_the_area_under_a_curve() {
    let want = json(&golden_or_committed("f_metrics.json"));
    let list = |value: &serde_json::Value| -> Vec<f64> {
        value.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
    };
    for (got, want) in IOU_THRESHOLDS.iter().zip(list(&want["iouv"])) {
        assert!((f64::from(*got) - want).abs() < 1e-6, "{got}, YOLOv5 {want}");
    }
    let example = &want["compute_ap_example"];
    let ap = average_precision(&list(&example["recall"]), &list(&example["precision"]));
    assert!((ap - example["ap"].as_f64().unwrap()).abs() < 1e-9, "{ap}");
}

#[test]
fn detections_on_images_without_labels_are_all_wrong() {
    let want = json(&golden_or_committed("f_metrics.json"));
    assert_eq!(want["process_batch_on_images_without_labels"], "all false");
    let Example { found, .. } = example();
    for (detections, _) in found {
        assert!(match_image(&detections, &[]).iter().flatten().all(|hit| !hit));
    }
}

#[test]
fn boxes_map_back_to_the_image() {
    let Some(file) = golden("g_geometry.json") else { return };
    let cases = json(&file);
    let pair = |value: &serde_json::Value| [0, 1].map(|side| value[side].as_f64().unwrap() as f32);
    let corners = |value: &serde_json::Value| [0, 1, 2, 3].map(|side| value[side].as_f64().unwrap() as f32);
    for case in cases["scale_boxes"].as_array().unwrap() {
        let ([height, width], native) = (pair(&case["img1"]), pair(&case["img0"]));
        let gain = (height / native[0]).min(width / native[1]);
        let pad = [(width - native[1] * gain) / 2.0, (height - native[0] * gain) / 2.0];
        let boxes = case["inp"].as_array().unwrap().iter().zip(case["out"].as_array().unwrap());
        for (from, to) in boxes {
            let got = to_native(corners(from), gain, pad, native.map(|side| side as u32));
            let want = corners(to);
            let off = got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(off < 1e-3, "{got:?}, YOLOv5 {want:?}");
        }
    }
}

#[test]
fn the_confusion_matrix() {
    let Example { found, truths, all } = example();
    let mut matrix = ConfusionMatrix::new(8);
    for ((detections, _), truths) in found.iter().zip(&truths).filter(|(_, truths)| !truths.is_empty()) {
        matrix.add_image(detections, truths);
    }
    let want = floats(&all["ap.confusion_matrix"]);
    for predicted in 0..9 {
        for truth in 0..9 {
            let want = want[predicted * 9 + truth] as u64;
            assert_eq!(matrix.count(predicted, truth), want, "class {truth} predicted as {predicted}");
        }
    }
}

//! Suppression, matching, average precision and the confusion matrix against the original.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and says what it skips"
)]

mod support;

use support::{floats, golden, golden_or_committed, json, tensors};
use tch::Tensor;
use yolo_trainer::detection::{Detection, NmsSettings, Truth, iou, suppress};
use yolo_trainer::metrics::{ConfusionMatrix, Judged, match_image, score};

fn rows<const N: usize>(tensor: &Tensor) -> Vec<[f32; N]> {
    floats(tensor).chunks_exact(N).map(|row| row.try_into().unwrap()).collect()
}

#[test]
fn suppression_keeps_what_the_original_keeps() {
    let (Some(numbers), Some(cases)) = (golden("e_nms.safetensors"), golden("e_nms.json")) else { return };
    let (all, cases) = (tensors(&numbers), json(&cases));
    for case in cases.as_array().unwrap() {
        let name = case["case"].as_u64().map_or("hybrid".to_owned(), |number| format!("case{number}"));
        let hybrid = name == "hybrid";
        let settings = NmsSettings {
            conf_thres: case["conf_thres"].as_f64().unwrap_or(0.25) as f32,
            iou_thres: case["iou_thres"].as_f64().unwrap_or(0.45) as f32,
            multi_label: case["multi_label"].as_bool().unwrap_or(hybrid),
            agnostic: case["agnostic"].as_bool().unwrap_or(false),
            classes: case["classes"]
                .as_array()
                .map(|list| list.iter().map(|class| class.as_u64().unwrap() as usize).collect()),
            max_det: case["max_det"].as_u64().unwrap_or(300) as usize,
        };
        let predictions = &all[case["src"].as_str().unwrap_or("pred")];
        let nc = predictions.size()[2] as usize - 5;
        for (image, count) in case["n"].as_array().unwrap().iter().enumerate() {
            // The hybrid case adds one label to the first image: class 2 at 100, 100, 50 by 60.
            let known = if hybrid && image == 0 { vec![(2, [75.0, 70.0, 125.0, 130.0])] } else { Vec::new() };
            let got = suppress(&floats(&predictions.get(image as i64)), nc, &known, &settings);
            assert_eq!(got.len() as u64, count.as_u64().unwrap(), "{name}, image {image}");
            let want = rows::<6>(&all[&format!("{name}.img{image}")]);
            for (index, (got, want)) in got.iter().zip(&want).enumerate() {
                assert!(
                    (got.confidence - want[4]).abs() < 1e-6,
                    "{name}.{image}[{index}]: {got:?} and {want:?}"
                );
                assert_eq!(got.class, want[5] as usize, "{name}.{image}[{index}]");
                for (a, b) in got.corners.iter().zip(want) {
                    assert!((a - b).abs() < 1e-3, "{name}.{image}[{index}]: {got:?} and {want:?}");
                }
            }
        }
    }
}

#[test]
fn overlaps_are_those_of_the_original() {
    let all = tensors(&golden_or_committed("f_iou_ap.safetensors"));
    let corners = |name: &str| -> Vec<[f32; 4]> {
        rows::<4>(&all[name]).into_iter().map(yolo_trainer::detection::corners).collect()
    };
    let (a, b) = (corners("a_xywh"), corners("b_xywh"));
    let want = floats(&all["box_iou_matrix_xyxy"]);
    for (i, first) in a.iter().enumerate() {
        for (j, second) in b.iter().enumerate() {
            let (got, want) = (iou(*first, *second), want[i * b.len() + j]);
            assert!((got - want).abs() < 1e-5, "boxes {i} and {j}: {got}, original {want}");
        }
    }
}

/// The original's example.
struct Example {
    /// The detections of each image, and where each stands in the original's list.
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
            assert!((got - want).abs() < 1e-6, "{key}[{index}]: {got}, original {want}");
        }
    };
    assert_eq!(scores.iter().map(|score| score.class as f64).collect::<Vec<_>>(), list("classes"));
    near(scores.iter().map(|score| score.precision).collect(), "p");
    near(scores.iter().map(|score| score.recall).collect(), "r");
    near(scores.iter().map(|score| score.f1).collect(), "f1");
    near(scores.iter().map(|score| score.ap50()).collect(), "ap50");
    near(scores.iter().map(|score| score.ap50_95()).collect(), "ap50_95");
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
            assert_eq!(matrix.count(predicted, truth), want, "class {truth} taken for {predicted}");
        }
    }
}

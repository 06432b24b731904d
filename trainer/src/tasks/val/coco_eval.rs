//! COCO's evaluation of detections, by the crate hotcoco, whose numbers are those of pycocotools. On COCO it reads
//! COCO's own annotations, which know crowds and the areas of polygons. Elsewhere the labels are the annotations.

use std::path::{Path, PathBuf};

use hotcoco::params::IouType;
use hotcoco::{Annotation, COCO, COCOeval, Category, Dataset, Image};
use yolo_data::scan::Sample;
use yolo_plan::dataset::DataSet;
use yolo_plan::event::CocoScores;

use super::coco_json::{CocoDetections, label_boxes};
use crate::error::TrainError;

/// COCO's annotations of its validation images, next to the list of them, where the downloads put them.
pub(super) fn annotations_of_coco(data: &DataSet) -> Option<PathBuf> {
    let list = data.val.iter().find(|path| path.ends_with("coco/val2017.txt"))?;
    Some(list.parent()?.join("annotations/instances_val2017.json"))
}

/// The numbers of `found` by the annotations in a file of COCO, in which the name of an image is its id.
///
/// # Errors
/// When the file cannot be read, or does not have the images.
pub(super) fn by_annotations(
    file: &Path,
    samples: &[Sample],
    found: &CocoDetections,
) -> Result<CocoScores, TrainError> {
    let annotations = COCO::new(file).map_err(|error| failed(&error))?;
    let id = |index: usize| -> Result<u64, TrainError> {
        let stem = samples[index].image.file_stem().unwrap_or_default().to_string_lossy();
        stem.parse().map_err(|_| {
            TrainError::new(format!(
                "COCO's rules cannot be applied: the image {} is not named by its number in {}",
                samples[index].image.display(),
                file.display()
            ))
        })
    };
    let images = (0..samples.len()).map(&id).collect::<Result<Vec<_>, _>>()?;
    evaluate(annotations, found, images, id)
}

/// The numbers of `found` by the labels. Images without detections count as well.
///
/// # Errors
/// When the evaluation fails.
pub(super) fn by_labels(
    samples: &[Sample],
    names: &[String],
    found: &CocoDetections,
) -> Result<CocoScores, TrainError> {
    let mut dataset = Dataset::default();
    for (index, sample) in samples.iter().enumerate() {
        let image = index as u64;
        dataset.images.push(Image {
            id: image,
            width: sample.width,
            height: sample.height,
            ..Image::default()
        });
        for label in label_boxes(sample) {
            dataset.annotations.push(Annotation {
                id: dataset.annotations.len() as u64 + 1,
                image_id: image,
                category_id: found.category(label.category) as u64,
                bbox: Some(label.bbox),
                area: Some(label.bbox[2] * label.bbox[3]),
                ..Annotation::default()
            });
        }
    }
    dataset.categories = names
        .iter()
        .enumerate()
        .map(|(class, name)| Category {
            id: found.category(class) as u64,
            name: name.clone(),
            ..Category::default()
        })
        .collect();
    evaluate(
        COCO::from_dataset(dataset),
        found,
        (0..samples.len() as u64).collect(),
        |index| Ok(index as u64),
    )
}

fn evaluate(
    truths: COCO,
    found: &CocoDetections,
    images: Vec<u64>,
    id: impl Fn(usize) -> Result<u64, TrainError>,
) -> Result<CocoScores, TrainError> {
    let mut results = Vec::new();
    for (sample, boxes) in &found.images {
        let image_id = id(*sample)?;
        results.extend(boxes.iter().map(|found| Annotation {
            image_id,
            category_id: found.category as u64,
            bbox: Some(found.bbox),
            score: Some(found.score),
            ..Annotation::default()
        }));
    }
    let results = truths.load_res_anns(results).map_err(|error| failed(&error))?;
    let mut evaluation = COCOeval::new(truths, results, IouType::Bbox);
    evaluation.params.img_ids = images;
    evaluation.evaluate().map_err(|error| failed(&error))?;
    evaluation.accumulate();
    // The lines that it returns are pycocotools'; the numbers are computed with them.
    let _ = evaluation.summarize_lines();
    let numbers = evaluation.stats().unwrap_or_default();
    // -1 means that there is nothing to count.
    let number = |index: usize| numbers.get(index).copied().filter(|&number| number >= 0.0);
    Ok(CocoScores(std::array::from_fn(number)))
}

fn failed(error: &hotcoco::Error) -> TrainError {
    TrainError::new(format!("COCO's rules cannot be applied to the detections: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::coco_json::CocoBox;
    use super::*;

    /// Twelve images of BCCD with all classes as one, the detections of yolov5n in them, and what pycocotools says.
    fn recorded(name: &str) -> (PathBuf, Value) {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
        let json = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        (file, json)
    }

    fn bbox(value: &Value) -> [f64; 4] {
        [0, 1, 2, 3].map(|side| value[side].as_f64().unwrap())
    }

    /// The images, numbered from 1, with their labels.
    fn samples() -> Vec<Sample> {
        let (_, annotations) = recorded("coco_annotations.json");
        let mut samples: Vec<Sample> = (1..=12)
            .map(|id| Sample {
                image: format!("{id:012}.jpg").into(),
                width: 640,
                height: 480,
                ..Sample::default()
            })
            .collect();
        for label in annotations["annotations"].as_array().unwrap() {
            let [x, y, w, h] = bbox(&label["bbox"]);
            let relative = [(x + w / 2.0) / 640.0, (y + h / 2.0) / 480.0, w / 640.0, h / 480.0];
            let [x, y, w, h] = relative.map(|side| side as f32);
            samples[label["image_id"].as_u64().unwrap() as usize - 1].boxes.push([0.0, x, y, w, h]);
        }
        samples
    }

    fn detections() -> CocoDetections {
        let (_, predictions) = recorded("coco_predictions.json");
        let predictions = predictions.as_array().unwrap();
        let of_image = |sample: usize| {
            let own =
                predictions.iter().filter(|found| found["image_id"].as_u64() == Some(sample as u64 + 1));
            let own = own.map(|found| CocoBox {
                category: 0,
                bbox: bbox(&found["bbox"]),
                score: found["score"].as_f64().unwrap(),
            });
            (sample, own.collect())
        };
        CocoDetections::of_boxes((0..12).map(of_image).collect())
    }

    fn assert_equal(scores: CocoScores, key: &str) {
        let (_, expected) = recorded("coco_expected.json");
        for ((name, _), (index, score)) in CocoScores::NAMES.iter().zip(scores.0.into_iter().enumerate()) {
            let want = expected[key][index].as_f64().unwrap();
            assert!((score.unwrap_or(-1.0) - want).abs() < 1e-12, "{name}: {score:?}, pycocotools {want}");
        }
    }

    #[test]
    fn the_numbers_are_those_of_pycocotools() {
        let (file, _) = recorded("coco_annotations.json");
        assert_equal(by_annotations(&file, &samples(), &detections()).unwrap(), "stats");
    }

    #[test]
    fn labels_stand_for_annotations_without_crowds() {
        let names = ["cell".to_owned()];
        assert_equal(by_labels(&samples(), &names, &detections()).unwrap(), "stats_without_crowds");
    }

    #[test]
    fn an_image_without_a_number_is_named() {
        let (file, _) = recorded("coco_annotations.json");
        let samples = [Sample { image: "cells/one.jpg".into(), ..Sample::default() }];
        let error = by_annotations(&file, &samples, &CocoDetections::of_boxes(Vec::new())).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("the image cells/one.jpg is not named by its number in"), "{message}");
    }

    #[test]
    fn a_validation_without_detections_scores_zero() {
        let scores =
            by_labels(&samples(), &["cell".to_owned()], &CocoDetections::of_boxes(Vec::new())).unwrap();
        assert_eq!((scores.0[0], scores.0[8]), (Some(0.0), Some(0.0)));
    }
}

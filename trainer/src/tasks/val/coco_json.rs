//! Detections as one JSON file in COCO's result format (`--save-json`), and the labels as annotations in COCO's
//! format, so that other programs can evaluate them as well. The numbers are rounded as YOLOv5 rounds them.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use rayon::prelude::*;
use serde_json::{Value, json};
use yolo_data::scan::Sample;
use yolo_plan::run::ValTask;

use super::tally::ImageDetections;
use crate::detection::Detection;
use crate::error::TrainError;

/// One object as COCO's formats have it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CocoBox {
    pub(super) category: usize,
    /// Left, top, width and height in pixels of the image file.
    pub(super) bbox: [f64; 4],
    /// Confidence; 1 for a label.
    pub(super) score: f64,
}

/// Detections in the form of the file.
pub(super) struct CocoDetections {
    coco: bool,
    /// The boxes of each image, with the index of its sample.
    pub(super) images: Vec<(usize, Vec<CocoBox>)>,
}

impl CocoDetections {
    pub(super) fn new(task: &ValTask, detections: &[ImageDetections]) -> Self {
        let coco = task.data.is_coco();
        let of_image = |image: &ImageDetections| {
            (image.sample, image.detections.iter().map(|found| of_detection(found, coco)).collect())
        };
        Self { coco, images: detections.par_iter().map(of_image).collect() }
    }

    /// These boxes, on a data set that is not COCO.
    #[cfg(test)]
    pub(super) fn of_boxes(images: Vec<(usize, Vec<CocoBox>)>) -> Self {
        Self { coco: false, images }
    }

    /// Writes the file into `folder`, named after the weights. Returns its path.
    pub(super) fn write(
        &self,
        samples: &[Sample],
        folder: &Path,
        weights: &Path,
    ) -> Result<PathBuf, TrainError> {
        let stem = weights.file_stem().unwrap_or_default().to_string_lossy();
        let path = folder.join(format!("{stem}_predictions.json"));
        let texts: Vec<String> = self
            .images
            .par_iter()
            .filter(|(_, boxes)| !boxes.is_empty())
            .map(|(sample, boxes)| {
                let id = image_id(&samples[*sample]);
                let line = |found: &CocoBox| {
                    let [left, top, width, height] = found.bbox;
                    format!(
                        "{{\"image_id\":{id},\"category_id\":{},\"bbox\":[{left},{top},{width},{height}],\"score\":{}}}",
                        found.category, found.score
                    )
                };
                boxes.iter().map(line).collect::<Vec<_>>().join(",\n")
            })
            .collect();
        let write = || {
            let mut file = std::io::BufWriter::new(fs::File::create(&path)?);
            file.write_all(b"[")?;
            for (index, text) in texts.iter().enumerate() {
                file.write_all(if index > 0 { b",\n" } else { b"" })?;
                file.write_all(text.as_bytes())?;
            }
            file.write_all(b"]\n")?;
            file.flush()
        };
        write().map_err(|error| TrainError::new(format!("cannot save the detections: {error}")))?;
        Ok(path)
    }

    /// The category of a class.
    pub(super) fn category(&self, class: usize) -> usize {
        if self.coco { coco_category(class) } else { class }
    }
}

/// The labels of an image.
pub(super) fn label_boxes(sample: &Sample) -> Vec<CocoBox> {
    let [width, height] = [sample.width, sample.height].map(f64::from);
    let of_label = |label: &[f32; 5]| {
        let [class, x, y, w, h] = label.map(f64::from);
        let [w, h] = [w * width, h * height];
        CocoBox {
            category: class as usize,
            bbox: [x * width - w / 2.0, y * height - h / 2.0, w, h],
            score: 1.0,
        }
    };
    sample.boxes.iter().map(of_label).collect()
}

/// Writes the labels of `samples` as `annotations.json` into `folder`. Returns its path.
pub(super) fn write_annotations(
    samples: &[Sample],
    names: &[String],
    folder: &Path,
) -> Result<PathBuf, TrainError> {
    let mut annotations = Vec::new();
    let mut images = Vec::new();
    for sample in samples {
        let id = image_id(sample);
        for label in label_boxes(sample) {
            annotations.push(json!({
                // pycocotools takes a match with annotation 0 for none.
                "id": annotations.len() + 1,
                "image_id": id,
                "category_id": label.category,
                "bbox": label.bbox,
                "area": label.bbox[2] * label.bbox[3],
                "iscrowd": 0,
            }));
        }
        let name = sample.image.file_name().unwrap_or_default().to_string_lossy();
        images.push(json!({ "id": id, "file_name": name, "width": sample.width, "height": sample.height }));
    }
    let categories: Vec<Value> =
        names.iter().enumerate().map(|(id, name)| json!({ "id": id, "name": name })).collect();
    let path = folder.join("annotations.json");
    let text = json!({ "images": images, "annotations": annotations, "categories": categories }).to_string();
    fs::write(&path, text)
        .map_err(|error| TrainError::new(format!("cannot save the annotations: {error}")))?;
    Ok(path)
}

/// In COCO, the name of an image file is its id.
fn image_id(sample: &Sample) -> Value {
    let stem = sample.image.file_stem().unwrap_or_default().to_string_lossy();
    stem.parse::<u64>().map_or_else(|_| json!(stem), |number| json!(number))
}

fn of_detection(found: &Detection, coco: bool) -> CocoBox {
    let [left, top, right, bottom] = found.corners;
    let bbox = [left, top, right - left, bottom - top].map(|value| rounded(value, 3));
    let category = if coco { coco_category(found.class) } else { found.class };
    CocoBox { category, bbox, score: rounded(found.confidence, 5) }
}

/// Python's rounding to decimal places: that of the exact value, and of a tie to the even digit.
fn rounded(value: f32, places: usize) -> f64 {
    let value = f64::from(value);
    format!("{value:.places$}").parse().unwrap_or(value)
}

/// The category of a class in COCO's annotations, which skip eleven of their 91 categories.
fn coco_category(class: usize) -> usize {
    const EMPTY: [usize; 11] = [12, 26, 29, 30, 45, 66, 68, 69, 71, 83, 91];
    EMPTY.into_iter().fold(class + 1, |id, empty| if empty <= id { id + 1 } else { id })
}

#[cfg(test)]
mod tests {
    use super::{coco_category, rounded};

    #[test]
    fn coco_categories_skip_those_without_objects() {
        // person, stop sign before the first gap, parking meter after it, and toothbrush, the last.
        assert_eq!([0, 10, 11, 12, 79].map(coco_category), [1, 11, 13, 14, 90]);
    }

    #[test]
    fn numbers_are_rounded_as_python_rounds_them() {
        assert_eq!([0.0625, 0.1875, 2.5004, 17.0].map(|value| rounded(value, 3)), [0.062, 0.188, 2.5, 17.0]);
    }
}

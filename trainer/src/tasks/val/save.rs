//! Detections as files: one YOLO label file per image (`--save-txt`, `--save-hybrid`,
//! `--save-conf`), and one JSON file in COCO's result format (`--save-json`).

use std::path::{Path, PathBuf};

use fs_err as fs;
use serde_json::json;
use yolo_plan::event::OutputFile;
use yolo_plan::run::ValTask;

use crate::detection::{Detection, ImageResult};
use crate::error::TrainError;
use crate::report::percent_g;

/// The detection files of a validation.
#[derive(Debug)]
pub(super) struct DetectionFiles {
    labels: Option<PathBuf>,
    confidence: bool,
    json: Option<PathBuf>,
    /// Whether categories have the numbers of COCO's annotations.
    coco: bool,
    results: Vec<serde_json::Value>,
}

impl DetectionFiles {
    /// The files that the task asks for, in `folder`; the JSON file is named after the weights.
    pub(super) fn new(task: &ValTask, folder: &Path, weights: &Path) -> Result<Self, TrainError> {
        let labels = (task.save_txt || task.save_hybrid).then(|| folder.join("labels"));
        if let Some(labels) = &labels {
            fs::create_dir_all(labels).map_err(unwritable)?;
        }
        let stem = weights.file_stem().unwrap_or_default().to_string_lossy();
        let json = task.save_json.then(|| folder.join(format!("{stem}_predictions.json")));
        let coco = task.data.val.iter().any(|path| path.ends_with("coco/val2017.txt"));
        Ok(Self { labels, confidence: task.save_conf, json, coco, results: Vec::new() })
    }

    /// Adds the detections of one image.
    pub(super) fn add(&mut self, image: &ImageResult<'_>) -> Result<(), TrainError> {
        let stem = image.sample.image.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(labels) = &self.labels {
            let text: String = image.detections.iter().map(|found| self.line(found, image.native)).collect();
            fs::write(labels.join(format!("{stem}.txt")), text).map_err(unwritable)?;
        }
        if self.json.is_some() {
            // In COCO, the name of an image file is its id.
            let id = stem.parse::<u64>().map_or_else(|_| json!(stem), |number| json!(number));
            self.results.extend(image.detections.iter().map(|found| {
                let [left, top, right, bottom] = found.corners;
                let round = |value: f32, digits: f64| (f64::from(value) * digits).round() / digits;
                let bbox = [left, top, right - left, bottom - top].map(|value| round(value, 1e3));
                json!({
                    "image_id": id,
                    "category_id": if self.coco { coco_category(found.class) } else { found.class },
                    "bbox": bbox,
                    "score": round(found.confidence, 1e5),
                })
            }));
        }
        Ok(())
    }

    fn line(&self, found: &Detection, [height, width]: [u32; 2]) -> String {
        let [left, top, right, bottom] = found.corners.map(f64::from);
        let (width, height) = (f64::from(width), f64::from(height));
        let numbers = [
            (left + right) / 2.0 / width,
            (top + bottom) / 2.0 / height,
            (right - left) / width,
            (bottom - top) / height,
        ];
        let mut cells = vec![found.class.to_string()];
        cells.extend(numbers.map(|value| percent_g(value, 6)));
        if self.confidence {
            cells.push(percent_g(f64::from(found.confidence), 6));
        }
        cells.join(" ") + "\n"
    }

    /// Writes the JSON file. Returns all files.
    pub(super) fn finish(self) -> Result<Vec<OutputFile>, TrainError> {
        let mut files = Vec::new();
        if let Some(path) = self.json {
            let text = serde_json::Value::Array(self.results).to_string();
            fs::write(&path, text).map_err(unwritable)?;
            files.push(OutputFile { what: "predictions".to_owned(), path });
        }
        if let Some(path) = self.labels {
            files.push(OutputFile { what: "labels".to_owned(), path });
        }
        Ok(files)
    }
}

/// The category of a class in COCO's annotations, which skip eleven of their 91 categories.
fn coco_category(class: usize) -> usize {
    const EMPTY: [usize; 11] = [12, 26, 29, 30, 45, 66, 68, 69, 71, 83, 91];
    EMPTY.into_iter().fold(class + 1, |id, empty| if empty <= id { id + 1 } else { id })
}

fn unwritable(error: std::io::Error) -> TrainError {
    TrainError::new(format!("cannot save the detections: {error}"))
}

#[cfg(test)]
mod tests {
    use super::coco_category;

    #[test]
    fn coco_categories_skip_those_without_objects() {
        // person, stop sign before the first gap, parking meter after it, and toothbrush, the last.
        assert_eq!([0, 10, 11, 12, 79].map(coco_category), [1, 11, 13, 14, 90]);
    }
}

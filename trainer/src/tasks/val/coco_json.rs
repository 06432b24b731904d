//! Detections as one JSON file in COCO's result format (`--save-json`).

use std::path::{Path, PathBuf};

use fs_err as fs;
use serde_json::json;
use yolo_data::scan::Sample;
use yolo_plan::run::ValTask;

use crate::detection::Detection;
use crate::error::TrainError;

/// The JSON file of a validation.
#[derive(Debug)]
pub(super) struct CocoJson {
    path: PathBuf,
    /// Whether categories have the numbers of COCO's annotations.
    coco: bool,
    results: Vec<serde_json::Value>,
}

impl CocoJson {
    /// A file in `folder`, named after the weights.
    pub(super) fn new(task: &ValTask, folder: &Path, weights: &Path) -> Self {
        let stem = weights.file_stem().unwrap_or_default().to_string_lossy();
        let coco = task.data.is_coco();
        Self { path: folder.join(format!("{stem}_predictions.json")), coco, results: Vec::new() }
    }

    /// Adds the detections of one image.
    pub(super) fn add(&mut self, sample: &Sample, detections: &[Detection]) {
        let stem = sample.image.file_stem().unwrap_or_default().to_string_lossy();
        // In COCO, the name of an image file is its id.
        let id = stem.parse::<u64>().map_or_else(|_| json!(stem), |number| json!(number));
        self.results.extend(detections.iter().map(|found| {
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

    /// Writes the file. Returns its path.
    pub(super) fn write(self) -> Result<PathBuf, TrainError> {
        let text = serde_json::Value::Array(self.results).to_string();
        fs::write(&self.path, text)
            .map_err(|error| TrainError::new(format!("cannot save the detections: {error}")))?;
        Ok(self.path)
    }
}

/// The category of a class in COCO's annotations, which skip eleven of their 91 categories.
fn coco_category(class: usize) -> usize {
    const EMPTY: [usize; 11] = [12, 26, 29, 30, 45, 66, 68, 69, 71, 83, 91];
    EMPTY.into_iter().fold(class + 1, |id, empty| if empty <= id { id + 1 } else { id })
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

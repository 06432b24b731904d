//! Detections as YOLO label files, one text file per image (`--save-txt`, `--save-conf`, `--save-format`).

use std::path::{Path, PathBuf};

use fs_err as fs;

use yolo_base::percent_g::percent_g;
use yolo_plan::run::SavedBoxes;

use super::boxes::Detection;
use crate::error::TrainError;
use crate::publish::publish;

/// A folder of label files.
#[derive(Debug, Clone)]
pub struct LabelFiles {
    folder: PathBuf,
    confidence: bool,
    boxes: SavedBoxes,
}

impl LabelFiles {
    /// Creates the folder. With `confidence`, each line ends with the confidence of the detection.
    ///
    /// # Errors
    /// When the folder cannot be created.
    pub fn create(folder: PathBuf, confidence: bool, boxes: SavedBoxes) -> Result<Self, TrainError> {
        fs::create_dir_all(&folder).map_err(unwritable)?;
        Ok(Self { folder, confidence, boxes })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes the file `stem.txt` of an image of this height and width.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write<'a>(
        &self,
        stem: &str,
        size: [u32; 2],
        detections: impl IntoIterator<Item = &'a Detection>,
    ) -> Result<(), TrainError> {
        let lines = detections.into_iter().map(|found| self.line(found, size));
        let text = lines.collect::<String>();
        publish(&self.folder.join(format!("{stem}.txt")), text.as_bytes()).map_err(unwritable)
    }

    /// Class, box, and the confidence if asked for.
    fn line(&self, found: &Detection, [height, width]: [u32; 2]) -> String {
        // In single precision, whose rounding decides the last digit of what YOLOv5 writes.
        let [left, top, right, bottom] = found.corners;
        let (width, height) = (width as f32, height as f32);
        let numbers = match self.boxes {
            SavedBoxes::Corners => [left, top, right, bottom],
            SavedBoxes::CenterAndSize => [
                (left + right) / 2.0 / width,
                (top + bottom) / 2.0 / height,
                (right - left) / width,
                (bottom - top) / height,
            ],
        };
        let mut cells = vec![found.class.to_string()];
        cells.extend(numbers.map(|value| percent_g(f64::from(value), 6)));
        if self.confidence {
            cells.push(percent_g(f64::from(found.confidence), 6));
        }
        cells.join(" ") + "\n"
    }
}

fn unwritable(error: std::io::Error) -> TrainError {
    TrainError::new(format!("cannot save the detections: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_class_center_and_size_relative_to_the_image_or_corners() {
        let found = Detection { corners: [10.0, 20.0, 30.0, 60.0], confidence: 0.5, class: 2 };
        let line = |confidence, boxes| {
            LabelFiles { folder: PathBuf::new(), confidence, boxes }.line(&found, [100, 200])
        };
        assert_eq!(line(false, SavedBoxes::CenterAndSize), "2 0.1 0.4 0.1 0.4\n");
        assert_eq!(line(true, SavedBoxes::CenterAndSize), "2 0.1 0.4 0.1 0.4 0.5\n");
        assert_eq!(line(true, SavedBoxes::Corners), "2 10 20 30 60 0.5\n");
    }
}

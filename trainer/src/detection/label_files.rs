//! Detections as YOLO label files, one text file per image (`--save-txt`, `--save-conf`).

use std::path::{Path, PathBuf};

use fs_err as fs;

use yolo_base::percent_g::percent_g;
use yolo_data::scan::Sample;

use super::boxes::Detection;
use crate::error::TrainError;

/// A folder of label files.
#[derive(Debug)]
pub struct LabelFiles {
    folder: PathBuf,
    confidence: bool,
}

impl LabelFiles {
    /// Creates the folder. With `confidence`, each line ends with the confidence of the detection.
    ///
    /// # Errors
    /// When the folder cannot be created.
    pub fn create(folder: PathBuf, confidence: bool) -> Result<Self, TrainError> {
        fs::create_dir_all(&folder).map_err(unwritable)?;
        Ok(Self { folder, confidence })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes the file of one image, named after it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, sample: &Sample, detections: &[Detection]) -> Result<(), TrainError> {
        let stem = sample.image.file_stem().unwrap_or_default().to_string_lossy();
        let size = [sample.height, sample.width];
        let lines = detections.iter().map(|found| line(found, size, self.confidence));
        fs::write(self.folder.join(format!("{stem}.txt")), lines.collect::<String>()).map_err(unwritable)
    }
}

/// Class, center and size relative to the image, and the confidence if asked for.
fn line(found: &Detection, [height, width]: [u32; 2], confidence: bool) -> String {
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
    if confidence {
        cells.push(percent_g(f64::from(found.confidence), 6));
    }
    cells.join(" ") + "\n"
}

fn unwritable(error: std::io::Error) -> TrainError {
    TrainError::new(format!("cannot save the detections: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_class_center_and_size_relative_to_the_image() {
        let found = Detection { corners: [10.0, 20.0, 30.0, 60.0], confidence: 0.5, class: 2 };
        assert_eq!(line(&found, [100, 200], false), "2 0.1 0.4 0.1 0.4\n");
        assert_eq!(line(&found, [100, 200], true), "2 0.1 0.4 0.1 0.4 0.5\n");
    }
}

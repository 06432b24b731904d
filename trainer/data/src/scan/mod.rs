//! From the entries of a data yaml to verified samples: images are listed, images and labels are
//! verified in parallel with YOLOv5's rules of what is corrupt (spec §7), and the result is kept in a
//! cache file that is valid as long as no image or label file changes.

mod cache;
mod files;
mod labels;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::error::DataError;
pub use files::{label_path, list_images};
pub use labels::{LabelError, Labels, parse_labels};
pub use verify::{ImageFault, verify_image};

/// One image of a data set with its labels.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample {
    /// The image file.
    pub image: PathBuf,
    /// Width in pixels, after the EXIF orientation.
    pub width: u32,
    /// Height in pixels, after the EXIF orientation.
    pub height: u32,
    /// Class and box of each object: class, centre x, centre y, width, height, in parts of the image.
    pub boxes: Vec<[f32; 5]>,
    /// Empty, or one polygon for each box: x and y in parts of the image.
    pub segments: Vec<Vec<[f32; 2]>>,
}

/// A verified split of a data set.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scan {
    /// The images that can be used, in the order of their paths.
    pub samples: Vec<Sample>,
    /// Images with a label file.
    pub found: usize,
    /// Images without a label file: background.
    pub missing: usize,
    /// Images whose label file is empty: background too.
    pub empty: usize,
    /// Images left out because they or their labels are corrupt.
    pub corrupt: usize,
    /// One message for each corrupt file, duplicate label or cache that could not be written.
    pub messages: Vec<String>,
}

/// How far a scan has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Files done.
    pub done: usize,
    /// Files in all.
    pub total: usize,
}

/// What a scan needs to know besides the folders.
#[derive(Clone, Copy)]
pub struct ScanOptions<'a> {
    /// The split's name for messages: "train", "val" or "test".
    pub split: &'a str,
    /// How many classes the data yaml names.
    pub classes: usize,
    /// Treats every object as class 0 (`--single-cls`).
    pub single_cls: bool,
    /// Makes a split without a single label an error, as training needs it.
    pub require_labels: bool,
    /// Reads and writes the cache file beside the labels.
    pub cache: bool,
    /// Called from several threads while images are verified.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

impl<'a> ScanOptions<'a> {
    /// Options for a split: labels are required of `train`, the cache is used.
    pub fn new(split: &'a str, classes: usize) -> Self {
        Self {
            split,
            classes,
            single_cls: false,
            require_labels: split == "train",
            cache: true,
            progress: None,
        }
    }
}

/// Lists and verifies the images of a split and their labels.
///
/// Corrupt images and labels are left out, counted and named in [`Scan::messages`].
///
/// # Errors
/// When an entry of `roots` leads nowhere, when there is no usable image, when a training split has no
/// labels, and when a label names a class beyond the names of the data set.
pub fn scan(roots: &[PathBuf], options: &ScanOptions<'_>) -> Result<Scan, DataError> {
    let images = list_images(roots, options.split)?;
    let Some(first) = images.first() else {
        let roots: Vec<_> = roots.iter().map(|root| root.display().to_string()).collect();
        return Err(DataError::NoImages { split: options.split.to_owned(), roots: roots.join(", ") });
    };
    let first_label = label_path(first);
    let mut scan = if options.cache {
        let cache = cache::location(roots, &first_label);
        let key = cache::key(&images);
        match cache::read(&cache, &key) {
            Some(scan) => scan,
            None => {
                let mut scan = verify_all(&images, options.progress);
                if let Err(reason) = cache::write(&cache, &key, &scan) {
                    scan.messages.push(format!(
                        "{}: the cache of labels cannot be written ({reason}); the next run verifies the images again",
                        cache.display()
                    ));
                }
                scan
            }
        }
    } else {
        verify_all(&images, options.progress)
    };
    if scan.samples.is_empty() {
        return Err(DataError::AllCorrupt {
            split: options.split.to_owned(),
            count: images.len(),
            first: scan.messages.first().cloned().unwrap_or_default(),
        });
    }
    if options.require_labels && scan.samples.iter().all(|sample| sample.boxes.is_empty()) {
        return Err(DataError::NoLabels { split: options.split.to_owned(), label: first_label });
    }
    if options.single_cls {
        scan.samples.iter_mut().flat_map(|sample| &mut sample.boxes).for_each(|row| row[0] = 0.0);
    }
    check_classes(&scan.samples, options.classes)?;
    Ok(scan)
}

/// What became of one image.
enum Outcome {
    Kept { sample: Sample, label: LabelState, message: Option<String> },
    Corrupt { labelled: bool, message: String },
}

/// Whether an image has a label file.
#[derive(Clone, Copy, PartialEq)]
enum LabelState {
    Found,
    Empty,
    Missing,
}

/// Verifies all images in parallel and keeps their order.
fn verify_all(images: &[PathBuf], progress: Option<&(dyn Fn(Progress) + Sync)>) -> Scan {
    let done = AtomicUsize::new(0);
    let outcomes: Vec<Outcome> = images
        .par_iter()
        .map(|image| {
            let outcome = verify_one(image);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(progress) = progress {
                progress(Progress { done, total: images.len() });
            }
            outcome
        })
        .collect();
    let mut scan = Scan::default();
    for outcome in outcomes {
        match outcome {
            Outcome::Kept { sample, label, message } => {
                scan.found += usize::from(label != LabelState::Missing);
                scan.empty += usize::from(label == LabelState::Empty);
                scan.missing += usize::from(label == LabelState::Missing);
                scan.messages.extend(message);
                scan.samples.push(sample);
            }
            Outcome::Corrupt { labelled, message } => {
                scan.found += usize::from(labelled);
                scan.corrupt += 1;
                scan.messages.push(message);
            }
        }
    }
    scan
}

/// Verifies one image, then its label file: a label file is only looked at when the image is good.
fn verify_one(image: &Path) -> Outcome {
    let (width, height) = match verify_image(image) {
        Ok(size) => size,
        Err(fault) => {
            return Outcome::Corrupt {
                labelled: false,
                message: format!("{}: image ignored: {fault}", image.display()),
            };
        }
    };
    let sample = Sample { image: image.to_path_buf(), width, height, ..Sample::default() };
    let path = label_path(image);
    if !path.is_file() {
        return Outcome::Kept { sample, label: LabelState::Missing, message: None };
    }
    let labels = match read_labels(&path) {
        Ok(labels) => labels,
        Err(reason) => {
            return Outcome::Corrupt {
                labelled: true,
                message: format!("{reason}; image {} ignored", image.display()),
            };
        }
    };
    let message = (labels.duplicates > 0).then(|| {
        let plural = if labels.duplicates == 1 { "" } else { "s" };
        format!("{}: {} duplicate label{plural} removed", path.display(), labels.duplicates)
    });
    let label = if labels.boxes.is_empty() { LabelState::Empty } else { LabelState::Found };
    Outcome::Kept {
        sample: Sample { boxes: labels.boxes, segments: labels.segments, ..sample },
        label,
        message,
    }
}

/// Reads and parses one label file; the error names file and line.
fn read_labels(path: &Path) -> Result<Labels, String> {
    let bytes = fs_err::read(path).map_err(|error| error.to_string())?;
    let text = std::str::from_utf8(&bytes).map_err(|_| format!("{}: not text", path.display()))?;
    parse_labels(text).map_err(|error| format!("{}:{}: {}", path.display(), error.line, error.reason))
}

/// Refuses a class beyond the names, as [`scan`] does.
///
/// # Errors
/// With the first label that names one.
pub fn check_classes(samples: &[Sample], classes: usize) -> Result<(), DataError> {
    let beyond = |class: f32| class >= classes as f32;
    let Some((sample, row)) =
        samples.iter().find_map(|sample| Some((sample, sample.boxes.iter().find(|row| beyond(row[0]))?)))
    else {
        return Ok(());
    };
    let file = label_path(&sample.image);
    // Rows are sorted when duplicates were removed, so the line is looked up in the file again.
    let line = fs_err::read_to_string(&file)
        .ok()
        .and_then(|text| labels::line_with_class(&text, beyond))
        .unwrap_or((1, row[0]));
    Err(DataError::ClassBeyondNames { file, line: line.0, class: line.1, names: classes })
}

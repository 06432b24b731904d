//! Turns the entries of a data YAML into verified samples. A scan lists the images, verifies images and
//! labels in parallel with YOLOv5's rules (spec §7), and keeps the result in a cache file, which is valid
//! until an image or a label file changes.

mod cache;
mod files;
mod fingerprint;
mod labels;
mod sample;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use yolo_base::format::count;

use crate::error::DataError;
pub use files::{label_path, list_images};
pub use fingerprint::{fingerprint_of_all, fingerprints};
pub use labels::{LabelError, Labels, parse_labels};
pub use sample::{Sample, Scan};
pub use verify::{ImageFault, verify_image};

/// The progress of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Files done.
    pub done: usize,
    /// All files.
    pub total: usize,
}

/// The options of a scan.
#[derive(Clone, Copy)]
pub struct ScanOptions<'a> {
    /// The name of the split in messages: "train", "val" or "test".
    pub split: &'a str,
    /// The number of classes in the data YAML.
    pub classes: usize,
    /// Treats every object as class 0 (`--single-cls`).
    pub single_cls: bool,
    /// Whether a split without any label is an error, as it is for training.
    pub require_labels: bool,
    /// Reads and writes the cache file.
    pub cache: bool,
    /// Called from several threads while images are verified.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

impl<'a> ScanOptions<'a> {
    /// The default options of a split: only `train` requires labels; the cache is used.
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
/// Corrupt images, and images with corrupt labels, are ignored, counted and reported in
/// [`Scan::messages`].
///
/// # Errors
/// If an entry of `roots` does not exist, there is no usable image, a training split has no labels, or a
/// label has a class that the data set does not name.
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
                        "cannot write the label cache {}: {reason}; the next run verifies all images again",
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

/// The result of verifying one image.
enum Verdict {
    Kept { sample: Sample, label: LabelState, message: Option<String> },
    Corrupt { labeled: bool, message: String },
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
    let verdicts: Vec<Verdict> = images
        .par_iter()
        .map(|image| {
            let verdict = verify_one(image);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(progress) = progress {
                progress(Progress { done, total: images.len() });
            }
            verdict
        })
        .collect();
    let mut scan = Scan::default();
    for verdict in verdicts {
        match verdict {
            Verdict::Kept { sample, label, message } => {
                scan.found += usize::from(label != LabelState::Missing);
                scan.empty += usize::from(label == LabelState::Empty);
                scan.missing += usize::from(label == LabelState::Missing);
                scan.messages.extend(message);
                scan.samples.push(sample);
            }
            Verdict::Corrupt { labeled, message } => {
                scan.found += usize::from(labeled);
                scan.corrupt += 1;
                scan.messages.push(message);
            }
        }
    }
    scan
}

/// Verifies one image and, if it is valid, its label file.
fn verify_one(image: &Path) -> Verdict {
    let (width, height) = match verify_image(image) {
        Ok(size) => size,
        Err(fault) => {
            return Verdict::Corrupt {
                labeled: false,
                message: format!("{}: image skipped: {fault}", image.display()),
            };
        }
    };
    let sample = Sample { image: image.to_path_buf(), width, height, ..Sample::default() };
    let path = label_path(image);
    if !path.is_file() {
        return Verdict::Kept { sample, label: LabelState::Missing, message: None };
    }
    let labels = match read_labels(&path) {
        Ok(labels) => labels,
        Err(reason) => {
            return Verdict::Corrupt {
                labeled: true,
                message: format!("{reason}; image {} skipped", image.display()),
            };
        }
    };
    let message = (labels.duplicates > 0)
        .then(|| format!("{}: {} removed", path.display(), count(labels.duplicates, "duplicate label")));
    let label = if labels.boxes.is_empty() { LabelState::Empty } else { LabelState::Found };
    Verdict::Kept {
        sample: Sample { boxes: labels.boxes, segments: labels.segments, ..sample },
        label,
        message,
    }
}

/// Reads and parses one label file; the error names the file and the line.
fn read_labels(path: &Path) -> Result<Labels, String> {
    let bytes = fs_err::read(path).map_err(|error| error.to_string())?;
    let text = std::str::from_utf8(&bytes).map_err(|_| format!("{}: not UTF-8 text", path.display()))?;
    parse_labels(text).map_err(|error| format!("{}:{}: {}", path.display(), error.line, error.reason))
}

/// Checks that every class has a name, as [`scan`] does.
///
/// # Errors
/// If a label has a class without a name; the error names the first.
pub fn check_classes(samples: &[Sample], classes: usize) -> Result<(), DataError> {
    let beyond = |class: f32| class >= classes as f32;
    let Some((sample, row)) =
        samples.iter().find_map(|sample| Some((sample, sample.boxes.iter().find(|row| beyond(row[0]))?)))
    else {
        return Ok(());
    };
    let file = label_path(&sample.image);
    // The rows are sorted if duplicates were removed, so the line number comes from the file.
    let line = fs_err::read_to_string(&file)
        .ok()
        .and_then(|text| labels::line_with_class(&text, beyond))
        .unwrap_or((1, row[0]));
    Err(DataError::ClassBeyondNames { file, line: line.0, class: line.1, names: classes })
}

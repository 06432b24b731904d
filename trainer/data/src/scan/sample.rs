//! The result of a scan: the usable images of a split with their labels.

use std::path::PathBuf;

/// One image of a data set with its labels.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample {
    /// The image file.
    pub image: PathBuf,
    /// Width in pixels, after the EXIF orientation.
    pub width: u32,
    /// Height in pixels, after the EXIF orientation.
    pub height: u32,
    /// Class, center x, center y, width and height of each object, as fractions of the image.
    pub boxes: Vec<[f32; 5]>,
    /// Empty, or one polygon per box: x and y as fractions of the image.
    pub segments: Vec<Vec<[f32; 2]>>,
}

/// A verified split of a data set.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scan {
    /// The usable images, sorted by path.
    pub samples: Vec<Sample>,
    /// Images with a label file.
    pub found: usize,
    /// Images without a label file. They are background.
    pub missing: usize,
    /// Images with an empty label file. They are background too.
    pub empty: usize,
    /// Images that are ignored because they or their labels are corrupt.
    pub corrupt: usize,
    /// One message per corrupt file, file with duplicate labels, or cache that could not be written.
    pub messages: Vec<String>,
}

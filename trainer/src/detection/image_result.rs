//! The detections of one image, with the image they belong to.

use yolo_data::loader::Batch;
use yolo_data::scan::Sample;

use super::boxes::{Detection, Truth};

/// The detections of one image, in pixels of the image file.
#[derive(Debug)]
pub struct ImageResult<'a> {
    /// The image.
    pub sample: &'a Sample,
    /// Its height and width in pixels.
    pub native: [u32; 2],
    /// What was found, most confident first.
    pub detections: &'a [Detection],
    /// What is labeled.
    pub truths: &'a [Truth],
    /// The batch that held the image.
    pub batch: &'a Batch,
    /// The number of that batch, from 0.
    pub batch_number: usize,
    /// The index of the image in the batch.
    pub index: usize,
}

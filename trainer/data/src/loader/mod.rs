//! From samples to batches: threads load, augment and stack images ahead of the training step.
//! [`TrainLoader`] gives augmented batches of one epoch after the other, [`ValLoader`] the images
//! as they are. Both deliver in order, with bounded memory, and give the same batches for any
//! number of threads.

mod batches;
mod disk;
mod error;
mod pipeline;
mod store;
mod train;
mod val;

pub use error::LoaderError;
pub use pipeline::Recycler;
pub use train::{LoaderSettings, TrainLoader};
pub use val::{ValLoader, ValSettings};

/// Images and targets of one step on one rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// Height of every image in pixels.
    pub height: usize,
    /// Width of every image in pixels.
    pub width: usize,
    /// `items.len() · 3 · height · width` bytes: images, planes R, G, B, rows.
    pub pixels: Vec<u8>,
    /// Image in the batch, class, then centre x, centre y, width and height as fractions of
    /// `width` and `height`.
    pub targets: Vec<[f32; 6]>,
    /// Where each image came from.
    pub items: Vec<Item>,
}

/// Where an image of a batch came from, and how to map boxes on it back.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Index into the samples; of a mosaic, the image that it was made for.
    pub sample: usize,
    /// Height and width of the file's image.
    pub native: [u32; 2],
    /// Scale of height and width from native to batch pixels; 1 for an augmented image, which has
    /// no such scale.
    pub ratio: [f32; 2],
    /// Pixels of padding left (x) and top (y) before rounding; 0 for an augmented image.
    pub pad: [f32; 2],
}

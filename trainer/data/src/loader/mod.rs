//! Makes batches from samples. Threads load, augment and stack images ahead of the training step.
//! [`TrainLoader`] returns augmented batches epoch by epoch, [`ValLoader`] images without augmentation. Both
//! return batches in order, use bounded memory, and return the same batches for any number of threads.

mod batches;
mod disk;
mod error;
#[cfg(target_os = "linux")]
mod mapping;
mod memory;
mod pipeline;
mod settings;
#[cfg(target_os = "linux")]
mod shared;
mod store;
mod train;
mod train_source;
mod val;

pub use error::LoaderError;
pub use memory::{ImageMemory, Kept};
pub use pipeline::{Halt, Recycler, Work};
pub use settings::LoaderSettings;
pub use train::TrainLoader;
pub use val::{ValLoader, ValSettings};

/// The images and targets of one step on one rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The height of every image in pixels.
    pub height: usize,
    /// The width of every image in pixels.
    pub width: usize,
    /// `items.len() · 3 · height · width` bytes: images, planes R, G, B, rows.
    pub pixels: Vec<u8>,
    /// The index of the image in the batch, the class, then center x, center y, width and height as
    /// fractions of `width` and `height`.
    pub targets: Vec<[f32; 6]>,
    /// The origin of each image.
    pub items: Vec<Item>,
}

/// The origin of an image in a batch, and the numbers that map its boxes back.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The index of the sample; for a mosaic, the sample that it was made for.
    pub sample: usize,
    /// The height and width of the image in the file.
    pub native: [u32; 2],
    /// The scale of height and width from native to batch pixels; 1 for an augmented image, which has
    /// none.
    pub ratio: [f32; 2],
    /// The padding in pixels on the left (x) and the top (y) before rounding; 0 for an augmented image.
    pub pad: [f32; 2],
}

impl Item {
    /// The scale with which boxes go back from batch to native pixels, the same for both axes: as in YOLOv5, that of
    /// the height. The scale of the width differs by less than a pixel of the batch, because a side is rounded.
    pub fn gain(&self) -> f32 {
        self.ratio[0]
    }
}

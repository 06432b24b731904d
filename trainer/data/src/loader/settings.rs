//! The settings of a training loader.

use yolo_plan::options::{Balance, Cache};

use super::ImageMemory;
use crate::augment::Augment;

/// The settings of a training loader.
#[derive(Debug, Clone)]
pub struct LoaderSettings {
    /// Side of the square network input in pixels.
    pub image_size: usize,
    /// Largest stride of the model; rectangular batches are multiples of it.
    pub stride: usize,
    /// Images per step of each rank.
    pub shares: Vec<usize>,
    /// This rank.
    pub rank: usize,
    /// The cost that the ranks of a step share alike; `None` for no balance.
    pub balance: Option<Balance>,
    /// Seed of order and augmentation.
    pub seed: u64,
    /// Threads that load images; 0 loads in the caller's thread.
    pub workers: usize,
    /// Rectangular batches of images with similar shapes, in a fixed order and without mosaic. Not together
    /// with `image_weights`.
    pub rect: bool,
    /// The number of classes if images are drawn by weight; `None` if an epoch has each image once.
    pub image_weights: Option<usize>,
    /// Four images become one of twice the size. The shares are multiples of four then, and images that do
    /// not fill a batch are left out.
    pub quad: bool,
    /// Where scaled images are kept between epochs.
    pub cache: Option<Cache>,
    /// The memory for them.
    pub memory: ImageMemory,
    /// How strongly images are augmented.
    pub augment: Augment,
}

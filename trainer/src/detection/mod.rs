//! From the outputs of a model to objects in images: boxes, non-maximum suppression and test-time
//! augmentation. Validation and prediction share it.

mod augmented;
mod boxes;
mod image;
mod nms;

pub use augmented::forward_augmented;
pub use boxes::{Corners, Detection, Truth, corners, iou, to_native};
pub use image::ImageResult;
pub use nms::{NmsSettings, suppress};

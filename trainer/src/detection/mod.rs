//! From a weights file and a batch of images to detected objects: loading a model, inference,
//! non-maximum suppression, boxes in pixels of the image file, and label files. Validation and
//! prediction share it.

mod augmented;
mod boxes;
mod candidates;
mod image_result;
mod inference;
mod label_files;
mod load_model;
mod nms;
mod nms_settings;
mod rows;

pub use augmented::forward_augmented;
pub use boxes::{Corners, Detection, Truth, corners, iou, to_native};
pub use image_result::ImageResult;
pub use inference::{Outputs, find_objects, forward, input_tensor};
pub use label_files::LabelFiles;
pub use load_model::{LoadedModel, load_model};
pub(crate) use nms::{CLASS_OFFSET, largest_float_up_to};
pub use nms::{Suppressor, suppress};
pub use nms_settings::NmsSettings;
pub use rows::Rows;

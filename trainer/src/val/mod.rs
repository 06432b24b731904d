//! Validation (spec §9): a detector runs over a split, its boxes are suppressed, judged against the
//! labels, and summed up as precision, recall and average precision. The numbers are made from
//! plain slices; only [`run`](mod@run) and [`command`] know tensors.

mod augmented;
mod average_precision;
mod command;
mod confusion;
mod detection;
mod matching;
mod nms;
mod run;
mod saved;

pub use augmented::forward_augmented;
pub use average_precision::{ClassScore, Curves, Judged, average_precision, score};
pub use command::run;
pub use confusion::ConfusionMatrix;
pub use detection::{Corners, Detection, Truth, corners, iou, to_native};
pub use matching::{Hits, IOU_THRESHOLDS, match_image};
pub use nms::{NmsSettings, suppress};
pub use run::{ImageResult, ValOutcome, ValSettings, images_tensor, validate};

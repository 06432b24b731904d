//! Metrics of a detector (spec §9): which detections match the labels, average precision over a
//! split, and the confusion matrix. Everything here works on plain slices.

mod average_precision;
mod confusion;
mod matching;

pub use average_precision::{ClassScore, Curves, Judged, average_precision, score};
pub use confusion::{ConfusionMatrix, Pair, is_confident, pairs};
pub use matching::{Hits, IOU_THRESHOLDS, match_image};

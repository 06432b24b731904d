//! The summary of a data set: images, boxes and problems of each split.

use serde::{Deserialize, Serialize};

/// The summary of a data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// One entry per split.
    pub splits: Vec<SplitSummary>,
    /// Boxes of each class over all splits, by name, in the order of the classes.
    pub classes: Vec<(String, usize)>,
    /// The problems, one message per file.
    pub wrong: Vec<String>,
    /// Why training would reject the whole data set: its first label whose class has no name.
    #[serde(default)]
    pub refused: Option<String>,
}

/// The summary of one split.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitSummary {
    /// "train", "val" or "test".
    pub name: String,
    /// Images that can be used.
    pub images: usize,
    /// Objects in them.
    pub boxes: usize,
    /// Images without an object.
    pub background: usize,
    /// Images that are ignored because they or their labels are corrupt.
    pub corrupt: usize,
}

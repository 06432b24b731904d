//! The summary of a data set: images, boxes and problems of each split.

use serde::{Deserialize, Serialize};

/// What lies in a data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// One line a split.
    pub splits: Vec<SplitSummary>,
    /// Boxes of each class over all splits, by name, in the order of the classes.
    pub classes: Vec<(String, usize)>,
    /// What is wrong, one message a file.
    pub wrong: Vec<String>,
    /// Why a training would refuse the whole set: its first label of a class beyond the names.
    #[serde(default)]
    pub refused: Option<String>,
}

/// What lies in one split.
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
    /// Images left out, because they or their labels are corrupt.
    pub corrupt: usize,
}

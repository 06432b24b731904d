//! The description of a data set: YOLOv5's data yaml (spec §7), read, checked and resolved to
//! paths that exist, or a built-in set by name. The images themselves are read by `yolo-data`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A data set whose yaml was read and whose folders were found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataSet {
    /// The yaml it came from.
    pub yaml: PathBuf,
    /// Folders, list files or globs of training images, absolute.
    pub train: Vec<PathBuf>,
    /// The same for validation.
    pub val: Vec<PathBuf>,
    /// The same for the test split, where there is one.
    pub test: Vec<PathBuf>,
    /// Class names; the index is the class.
    pub names: Vec<String>,
}

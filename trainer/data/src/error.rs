//! Errors about the files of a data set. Every error is one message that names the file,
//! the value and the reason; its [`Hint`] says what to do next.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use yolo_base::{Hint, format};

/// A failure to read, verify or write the files of a data set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// An operation of the operating system failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation, as a verb: "read", "create", "rename".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// A file cannot be decoded as an image.
    #[error("cannot decode {}: {reason}", path.display())]
    Decode {
        /// The image file.
        path: PathBuf,
        /// What is wrong with its content.
        reason: String,
    },
    /// A folder, list or pattern of a split does not exist or has no match.
    #[error("{} does not exist (images of the {split} split)", path.display())]
    Missing {
        /// "train", "val" or "test".
        split: String,
        /// The entry of the data YAML.
        path: PathBuf,
    },
    /// A pattern with `*`, `?` or `[` is invalid.
    #[error("{pattern} is not a valid pattern of the {split} split: {reason}")]
    Pattern {
        /// "train", "val" or "test".
        split: String,
        /// The pattern.
        pattern: String,
        /// Where and why it is wrong.
        reason: String,
    },
    /// A split has no images.
    #[error("no images of the {split} split in {roots}")]
    NoImages {
        /// "train", "val" or "test".
        split: String,
        /// The folders, lists and patterns that were searched.
        roots: String,
    },
    /// Every image of a split is corrupt.
    #[error("all {count} images of the {split} split are corrupt; the first: {first}")]
    AllCorrupt {
        /// "train", "val" or "test".
        split: String,
        /// The number of images.
        count: usize,
        /// The message of one of them.
        first: String,
    },
    /// A training split has images but no labels.
    #[error("no labels of the {split} split; the first label file would be {}", label.display())]
    NoLabels {
        /// "train", usually.
        split: String,
        /// The expected label file of the first image.
        label: PathBuf,
    },
    /// A label has a class that the data YAML does not name.
    #[error(
        "{}:{line}: class {class}, but the data set names {} (0 to {})",
        file.display(),
        format::count_of(*names, "class", "classes"),
        names.saturating_sub(1)
    )]
    ClassBeyondNames {
        /// The label file.
        file: PathBuf,
        /// The line in it, from 1.
        line: usize,
        /// The class found there.
        class: f32,
        /// The number of names in the data YAML.
        names: usize,
    },
    /// The folder for the built-in data set contains other files.
    #[error("{} contains other files, which the built-in data set does not overwrite", path.display())]
    Occupied {
        /// The folder.
        path: PathBuf,
    },
}

impl Hint for DataError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::Io { .. } => return None,
            Self::Decode { .. } => "replace the file with a readable image, or delete it",
            Self::Missing { .. } | Self::Pattern { .. } => "correct the entry of this split in the data YAML",
            Self::NoImages { .. } => {
                "put images there (bmp, jpeg, jpg, mpo, png, tif, tiff, webp) or correct the data YAML"
            }
            Self::AllCorrupt { .. } => "fix the files that the message names",
            Self::NoLabels { .. } => {
                "the label of an image has the same path with the last `/images/` replaced by `/labels/` and the \
                 extension `.txt`"
            }
            Self::ClassBeyondNames { .. } => {
                "correct the label, or add the missing class to `names` in the data YAML"
            }
            Self::Occupied { .. } => "remove or rename that folder, then run the command again",
        };
        Some(hint.into())
    }
}

impl DataError {
    /// An [`DataError::Io`] for `map_err`.
    pub(crate) fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |source| Self::Io { action, path, source }
    }

    /// A [`DataError::Decode`].
    pub(crate) fn decode(path: &Path, reason: impl ToString) -> Self {
        Self::Decode { path: path.to_path_buf(), reason: reason.to_string() }
    }
}

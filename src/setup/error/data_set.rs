//! Errors of the data sets' setup.

use std::borrow::Cow;
use std::path::PathBuf;

use yolo_base::{Hint, format};
use yolo_plan::dataset::FETCHABLE;

/// A data set that cannot be installed or trained on.
#[derive(Debug, thiserror::Error)]
pub enum DataSetError {
    /// A data set that is installed, but that training would reject.
    #[error("the data set {name} is installed, but cannot be used for training: {why}")]
    Untrainable {
        /// Its name.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// A `download:` that is code.
    #[error("the data set {yaml}: its `download` is a {kind}, which is never run; it {would}")]
    DownloadIsCode {
        /// The yaml.
        yaml: String,
        /// What it is.
        kind: &'static str,
        /// What the code would do.
        would: String,
    },
    /// Neither images nor a `download:`.
    #[error("the data set {yaml} has neither images on this machine nor a `download` URL")]
    NothingToFetch {
        /// The yaml.
        yaml: String,
    },
    /// The downloaded archives contain something else.
    #[error("the archives of {name} do not contain {wanted}, but {holds}; nothing was installed")]
    NotInArchive {
        /// The data set.
        name: String,
        /// The folders that the yaml names.
        wanted: String,
        /// The folders that the archives contain.
        holds: String,
    },
    /// A mirror's file has the name of a known archive, but contains something else.
    #[error(
        "{sources}: not the archive of {name}: it does not contain {wanted}, but {holds}; nothing was installed"
    )]
    WrongArchive {
        /// The data set.
        name: String,
        /// Where the archives came from.
        sources: String,
        /// The folders that should be in them.
        wanted: String,
        /// The folders that the archives contain.
        holds: String,
    },
    /// Two data sets would share a folder.
    #[error("{} can hold only one data set: it holds the one from {there}, not the one from {wanted}; nothing was changed", folder.display())]
    AnotherSet {
        /// The folder.
        folder: PathBuf,
        /// Where the first one comes from.
        there: String,
        /// Where the other one comes from.
        wanted: String,
    },
    /// Files that setup did not install are in the way.
    #[error(
        "{} {} that setup did not install and will not overwrite",
        folder.display(),
        if *is_folder { "contains files" } else { "is a file" },
    )]
    Occupied {
        /// The path of the data set.
        folder: PathBuf,
        /// Whether a folder is there, rather than a file.
        is_folder: bool,
    },
    /// No room for a copy on the Linux side.
    #[error("a copy of the data set ({name}) needs {needed} in {}, which has {free} free", folder.display())]
    NoRoomToCopy {
        /// Its name.
        name: String,
        /// Bytes, as text.
        needed: String,
        /// Bytes, as text.
        free: String,
        /// The folder of data sets.
        folder: PathBuf,
    },
    /// A copy is not what was read.
    #[error("{} is not a copy of {}: the file changed while it was copied, or a disk is damaged", to.display(), from.display())]
    BadCopy {
        /// The file.
        from: PathBuf,
        /// Its copy.
        to: PathBuf,
    },
    /// A list of images cannot name the file.
    #[error("the name of {} is not valid UTF-8", path.display())]
    NotUnicode {
        /// The file.
        path: PathBuf,
    },
}

impl Hint for DataSetError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::Untrainable { .. } => {
                "fix the label, or add the missing class to `names` in the data YAML; then run the command again"
            }
            Self::DownloadIsCode { .. } => {
                return Some(
                    format!(
                        "download the data yourself into the `path` of the YAML file, list the URLs of its archives as \
                         `download: [https://…]`, or use a data set that yolo can download: {}",
                        format::choice(&FETCHABLE)
                    )
                    .into(),
                );
            }
            Self::NothingToFetch { .. } => {
                "correct `path`, `train` and `val` in the YAML file, or add a `download` URL"
            }
            Self::NotInArchive { .. } => {
                "correct `path`, `train` and `val` in the YAML file so that they name folders in the archive"
            }
            Self::WrongArchive { .. } => {
                "put the right archive there or unset YOLO_MIRROR; then run the command again"
            }
            Self::AnotherSet { .. } => {
                "use a different `path` in one of the two YAML files, or remove the installed one with \
                 `yolo setup --remove NAME`"
            }
            Self::Occupied { .. } => "move it away, or correct `path` in the data YAML",
            Self::NoRoomToCopy { .. } => {
                "free some space, or omit --data-to-linux to train from the Windows drive, which is slow"
            }
            Self::BadCopy { .. } => "run the command again: what is copied already is kept",
            Self::NotUnicode { .. } => "rename the file",
        };
        Some(hint.into())
    }
}

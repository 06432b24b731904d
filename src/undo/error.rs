//! Why a change cannot be undone, and what to do next.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use yolo_base::Hint;

use crate::fetch::FetchError;

/// A failure of `yolo undo`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UndoError {
    /// No change has this number.
    #[error("there is no change {number}; {there}")]
    NoSuchChange {
        /// The number.
        number: u64,
        /// What there is.
        there: String,
    },
    /// `last`, and nothing can be undone.
    #[error("there is no change that can be undone")]
    Nothing,
    /// It is not undone as things are.
    #[error("change {number} was not undone: {why}")]
    Refused {
        /// Its number.
        number: u64,
        /// Why.
        why: String,
        /// What to do.
        hint: Option<String>,
    },
    /// A file could not be read or changed.
    #[error("change {number} was not undone: cannot {action} {}: {source}", path.display())]
    Disk {
        /// The number of the change.
        number: u64,
        /// Such as "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The journal cannot be locked, or a folder not removed.
    #[error(transparent)]
    Fetch(#[from] FetchError),
}

impl UndoError {
    /// The error for a file of a change.
    pub(super) fn disk(
        number: u64,
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Disk { number, action, path, source }
    }
}

impl Hint for UndoError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::NoSuchChange { .. } | Self::Nothing => Some("`yolo undo` lists all changes".into()),
            Self::Refused { hint, .. } => hint.as_deref().map(Into::into),
            Self::Disk { source, number, .. } if source.kind() == io::ErrorKind::PermissionDenied => Some(
                if cfg!(windows) {
                    format!("run `yolo undo {number}` in a terminal that was opened as administrator")
                } else {
                    format!("run `yolo undo {number}` as a user who may change it")
                }
                .into(),
            ),
            Self::Disk { number, .. } => Some(
                format!("remove the cause and run `yolo undo {number}` again; nothing is done twice").into(),
            ),
            Self::Fetch(error) => error.hint(),
        }
    }
}

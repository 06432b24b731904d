//! Why a command could not do what was asked: one message and, where there is one, the next step.

use std::path::PathBuf;

use yolo_checks::facts::RecordingError;
use yolo_data::error::DataError;
use yolo_plan::PlanError;

use crate::dirs::YoloDirsError;
use crate::launch::LaunchError;
use crate::setup::{SetupError, WslError};

/// The error that a command ends with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Wsl(#[from] WslError),
    #[error(transparent)]
    Places(#[from] YoloDirsError),
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error("{what}: {source}")]
    File { what: String, source: std::io::Error, hint: Option<String> },
    #[error("{file} is no recording of a host: {source}", file = .file.display())]
    Recording { file: PathBuf, source: RecordingError },
    #[error("this machine would stop the run:\n{told}")]
    Preflight { told: String },
    #[error("{what}")]
    Misuse { what: String, hint: String },
}

impl CommandError {
    /// What to do next.
    pub(crate) fn hint(&self) -> Option<&str> {
        match self {
            Self::Plan(error) => error.hint(),
            Self::Setup(error) => error.hint(),
            Self::Wsl(error) => match yolo_base::Hint::hint(error) {
                Some(std::borrow::Cow::Borrowed(text)) => Some(text),
                _ => None,
            },
            Self::Data(error) => error.hint(),
            Self::Launch(error) => error.hint(),
            Self::File { hint, .. } => hint.as_deref(),
            Self::Misuse { hint, .. } => Some(hint),
            Self::Preflight { .. } => {
                Some("`yolo doctor --explain ID` tells more; `--no-preflight` starts the run all the same")
            }
            Self::Recording { .. } => {
                Some("docs/recording.md says what a recording holds; `yolo doctor --record FILE` writes one")
            }
            Self::Places(_) => Some("set YOLO_HOME to a folder that you may write"),
        }
    }
}

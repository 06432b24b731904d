//! Errors of the trainer's setup.

use std::borrow::Cow;
use std::path::PathBuf;

use yolo_base::Hint;

/// A trainer that cannot be found or built.
#[derive(Debug, thiserror::Error)]
pub enum TrainerError {
    /// `YOLO_TRAINER` is not a program.
    #[error("YOLO_TRAINER is {}, {why}", path.display())]
    Named {
        /// The value.
        path: PathBuf,
        /// "which does not exist", "which is not executable".
        why: &'static str,
    },
    /// Neither a release archive nor a checkout.
    #[error(
        "yolo-trainer not found: it is not next to {}, and the checkout that yolo was built from ({}) no longer exists",
        exe.display(), checkout.display()
    )]
    Missing {
        /// This program.
        exe: PathBuf,
        /// Where the source was.
        checkout: PathBuf,
    },
    /// A tool that the build needs.
    #[error("cannot build the trainer: {tool} is not installed")]
    Tool {
        /// "cargo", "a C++ compiler".
        tool: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// Cargo failed.
    #[error("the trainer could not be built ({status}):\n{lines}")]
    Build {
        /// How cargo exited.
        status: String,
        /// The last lines of errors.
        lines: String,
        /// What to do.
        remedy: String,
    },
}

impl Hint for TrainerError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::Named { .. } => "set it to the yolo-trainer program, or unset it",
            Self::Missing { .. } => {
                "copy yolo-trainer from the release archive next to yolo, or set YOLO_TRAINER to its path"
            }
            Self::Tool { remedy, .. } => remedy,
            Self::Build { remedy, .. } => remedy,
        };
        Some(hint.into())
    }
}

//! The errors of setup, each with what to do next. What can go wrong with one kind of item has an enum
//! of its own.

mod data_set;
mod libtorch;
mod nccl;
mod trainer;
mod weights;

pub use data_set::DataSetError;
pub use libtorch::{FailedSource, LibtorchError};
pub use nccl::NcclError;
pub use trainer::TrainerError;
pub use weights::WeightsError;

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

use yolo_base::Hint;

use crate::fetch::FetchError;

/// A failure of the setup.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The disk failed, or a download did and no other source can help.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// A yaml or an option of a data set.
    #[error(transparent)]
    Plan(#[from] yolo_plan::PlanError),
    /// The images or labels of a data set.
    #[error(transparent)]
    Data(#[from] yolo_data::error::DataError),
    /// libtorch.
    #[error(transparent)]
    Libtorch(#[from] LibtorchError),
    /// The trainer.
    #[error(transparent)]
    Trainer(#[from] TrainerError),
    /// The NCCL plugin.
    #[error(transparent)]
    Nccl(#[from] NcclError),
    /// Weights.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// A data set.
    #[error(transparent)]
    DataSet(#[from] DataSetError),
    /// `YOLO_MIRROR` is not a usable mirror.
    #[error("YOLO_MIRROR is {mirror}: {why}")]
    Mirror {
        /// Its value, without credentials.
        mirror: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// `--remove` names something that is not installed.
    #[error("not installed: {what}; {installed}")]
    NothingToRemove {
        /// The argument.
        what: String,
        /// What is installed.
        installed: String,
    },
}

impl SetupError {
    pub(super) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let disk = FetchError::disk(action, path);
        move |source| disk(source).into()
    }
}

impl Hint for SetupError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            // Download and disk errors name their own remedy.
            Self::Fetch(error) => error.hint(),
            Self::Plan(error) => error.hint(),
            Self::Data(error) => error.hint(),
            Self::Libtorch(error) => error.hint(),
            Self::Trainer(error) => error.hint(),
            Self::Nccl(error) => error.hint(),
            Self::Weights(error) => error.hint(),
            Self::DataSet(error) => error.hint(),
            Self::Mirror { .. } => Some("set it to a URL or folder that has the files, or unset it".into()),
            Self::NothingToRemove { .. } => Some("`yolo setup --list` shows what is installed".into()),
        }
    }
}

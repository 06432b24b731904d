//! Errors of the weights' setup.

use std::borrow::Cow;
use std::path::PathBuf;

use yolo_base::Hint;

/// Weights that cannot be installed.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// A value of `--weights` that cannot be used.
    #[error("--weights {argument}: {why}")]
    Invalid {
        /// The value, without credentials.
        argument: String,
        /// What is wrong with it.
        why: String,
    },
    /// Another file has the name of the weights.
    #[error("{} {by}; setup will not overwrite it", path.display())]
    Taken {
        /// The file.
        path: PathBuf,
        /// What it is.
        by: String,
    },
}

impl Hint for WeightsError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::Invalid { .. } => {
                "pass a file, a URL, or a pretrained model: yolov5n, yolov5s, yolov5m, yolov5l, yolov5x, or the same with the suffix 6 (yolov5n6)"
            }
            Self::Taken { .. } => {
                "if another setup has just installed it, run the command again, and these weights get another name; else \
                 rename your file, remove the installed one with `yolo setup --remove NAME`, or pass the path of your file to \
                 the `--weights` of another command, such as `yolo predict`, which needs no setup"
            }
        };
        Some(hint.into())
    }
}

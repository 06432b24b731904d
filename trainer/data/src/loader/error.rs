//! Why a loader cannot make a batch. The scan has verified the images, so most of these mean that a
//! file changed during the run.

use std::borrow::Cow;
use std::path::PathBuf;

use yolo_base::Hint;

use crate::error::DataError;

/// Why a loader could not make a batch.
#[derive(Debug, thiserror::Error)]
pub enum LoaderError {
    /// An image that the scan accepted cannot be read anymore.
    #[error("{source} (its header was readable when the data set was verified)")]
    Image {
        /// The image.
        path: PathBuf,
        /// The reason, with the path.
        source: DataError,
    },
    /// An image has other dimensions than the scan found.
    #[error(
        "{} is {width}x{height} pixels but was {}x{} when the data set was verified",
        path.display(), scanned[0], scanned[1]
    )]
    Changed {
        /// The image.
        path: PathBuf,
        /// Width in pixels.
        width: usize,
        /// Height in pixels.
        height: usize,
        /// Width and height that the scan found.
        scanned: [u32; 2],
    },
    /// There is nothing to load.
    #[error("there are no images to load")]
    NoImages,
    /// With `--quad` only full batches are trained, and there is none.
    #[error("--quad trains full batches only, and {images} images are fewer than a batch of {batch}")]
    NoFullBatch {
        /// Images of the split.
        images: usize,
        /// Images of a batch over all ranks.
        batch: usize,
    },
    /// A setting is out of range.
    #[error("{name} is {value}; it must be {requirement}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// What it must be.
        requirement: &'static str,
        /// What it is.
        value: usize,
    },
    /// The operating system refused to start threads.
    #[error("cannot start {count} loader threads: {source}")]
    Threads {
        /// How many threads.
        count: usize,
        /// The reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A thread panicked.
    #[error("a loader thread ended unexpectedly")]
    Worker,
}

impl Hint for LoaderError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::Image { .. } => {
                "restore the image, or start again without it; a training run continues with --resume"
            }
            Self::Changed { .. } => "start again, so that the data set is verified again",
            Self::NoImages => "check the folders in the data YAML",
            Self::NoFullBatch { .. } => "use a smaller --batch, or omit --quad",
            Self::Setting { .. } => return None,
            Self::Threads { .. } => "use fewer --workers",
            Self::Worker => "this is a bug; report it with the lines above",
        };
        Some(Cow::Borrowed(hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_says_why_an_image_failed() {
        let path = PathBuf::from("images/a.jpg");
        let source = DataError::decode(&path, "truncated");
        let error = LoaderError::Image { path, source };
        assert_eq!(
            error.to_string(),
            "cannot decode images/a.jpg: truncated (its header was readable when the data set was verified)"
        );
        assert!(error.hint().is_some_and(|hint| hint.contains("restore")));
        let source = "no threads left".into();
        assert!(LoaderError::Threads { count: 8, source }.to_string().ends_with("no threads left"));
    }
}

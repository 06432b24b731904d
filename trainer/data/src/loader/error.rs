//! What can stop a loader. Every message names the file or setting; the images were verified by
//! the scan before, so most of these mean that something changed under a running program.

use std::path::PathBuf;

use crate::error::DataError;

/// Why no batch could be made.
#[derive(Debug, thiserror::Error)]
pub enum LoaderError {
    /// An image that the scan accepted cannot be read any more.
    #[error(
        "failed to load image {}, which was readable when the data set was verified; restore it or start again, \
         and it will be left out",
        path.display()
    )]
    Image {
        /// The image.
        path: PathBuf,
        /// What the decoder or the operating system said.
        source: DataError,
    },
    /// An image has other dimensions than the scan saw.
    #[error(
        "image {} is {width}x{height} pixels now and was {}x{} when the data set was verified; start again to verify anew",
        path.display(), scanned[0], scanned[1]
    )]
    Changed {
        /// The image.
        path: PathBuf,
        /// Width in pixels.
        width: usize,
        /// Height in pixels.
        height: usize,
        /// Width and height when scanned.
        scanned: [u32; 2],
    },
    /// There is nothing to load.
    #[error("no images to load; check the folders that the data yaml names")]
    NoImages,
    /// A number that makes no batch.
    #[error("{name} must be {requirement}, not {value}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// What it must be.
        requirement: &'static str,
        /// What it was.
        value: usize,
    },
    /// The operating system refused a thread.
    #[error("failed to start {count} loader threads; lower --workers")]
    Threads {
        /// Threads asked for.
        count: usize,
        /// What the operating system said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A thread ended without a result, which is a mistake in this program.
    #[error("a loader thread ended unexpectedly; please report it with the lines above")]
    Worker,
}

//! Files and pixels of a data set, without libtorch: weights, labels, images, augmentation and loading.
//! Everything is plain buffers, so that the command can verify a data set where no libtorch is installed.

pub mod augment;
pub mod error;
pub mod image;
pub mod loader;
pub mod random;
pub mod rect;
pub mod sampler;
pub mod scan;
pub mod shapes;

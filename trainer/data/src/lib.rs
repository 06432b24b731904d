//! Files and pixels of a data set: labels, images, augmentation and loading. Everything is plain
//! buffers without libtorch, so the command can verify a data set on a machine that has none.

pub mod augment;
pub mod error;
pub mod image;
pub mod loader;
pub mod random;
pub mod rect_batches;
pub mod sampler;
pub mod scan;
pub mod shapes;

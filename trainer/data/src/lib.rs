//! Data sets: scanning files and labels, decoding and augmenting images, and loading batches. The crate does
//! not need libtorch, so the command can verify a data set on a machine without it.

pub mod augment;
pub mod balance;
pub mod error;
pub mod image;
pub mod image_weights;
pub mod loader;
pub mod random;
pub mod rect_batches;
pub mod sampler;
pub mod scan;
pub mod shapes;

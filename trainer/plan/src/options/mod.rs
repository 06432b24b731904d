//! The options of the commands that start ranks, with their help: one file per command. `None` and
//! `false` mean that the user did not give the option; [`crate::run`] applies the defaults, because
//! the built-in data set has others. The names are YOLOv5's (spec §12).
//!
//! Numbers are parsed by [`crate::number`], and may be negative, so that the message is ours.

mod train;
mod val;

pub use train::{Cache, Optimizer, TrainOptions};
pub use val::ValOptions;

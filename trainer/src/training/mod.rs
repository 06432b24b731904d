//! What a training run consists of, built from its task: the images with their loaders, model and
//! learner, and the running numbers of its steps. `yolo train` trains with it, and `yolo bench`
//! measures it.

mod algorithms;
mod build;
mod data;
mod losses;
mod meter;
pub(crate) mod multi_scale;
mod same_data;

pub(crate) use algorithms::FastestAlgorithms;
pub(crate) use build::{build_learner, build_model};
pub(crate) use data::{open_val, read_split, train_loader};
pub(crate) use losses::LossSums;
pub(crate) use losses::{Diverged, EpochLosses};
pub(crate) use meter::{Meter, Rate};
pub(crate) use same_data::summary;

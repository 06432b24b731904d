//! Videos, cameras and streams through the programs ffmpeg and ffprobe: their frames as images, and images as a video.
//! Nothing here knows the network. Every program that is started ends with the value that started it.

mod encode;
mod frames;
mod newest;
mod page;
mod ppm;
mod probe;
mod program;
mod said;

pub(super) use encode::{Encoder, Pace};
pub(super) use frames::{Frames, Next};
pub(super) use newest::{Live, News};
pub(super) use page::page_at;
pub(super) use probe::{Facts, probe};
pub(super) use program::Ffmpeg;

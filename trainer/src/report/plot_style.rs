//! What all plots share: colors that people with any color vision can tell apart, and the error
//! for a file that cannot be written.

use std::fmt::Display;
use std::path::Path;

use plotters::style::RGBColor;
use yolo_base::palette::PALETTE;

use crate::error::TrainError;

/// The color of the `index`-th line; repeats after eight.
pub(super) fn color(index: usize) -> RGBColor {
    let [red, green, blue] = PALETTE[index % PALETTE.len()];
    RGBColor(red, green, blue)
}

/// The error for a plot that cannot be drawn or written.
pub(super) fn failed(path: &Path, error: impl Display) -> TrainError {
    TrainError::new(format!("cannot write the plot {}: {error}", path.display()))
}

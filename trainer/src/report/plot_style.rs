//! What all plots share: colors that people with any color vision can tell apart, and the error
//! for a file that cannot be written.

use std::fmt::Display;
use std::path::Path;

use plotters::style::RGBColor;

use crate::error::TrainError;

/// Okabe and Ito's palette, distinguishable with any color vision.
const PALETTE: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(240, 228, 66),
    RGBColor(0, 0, 0),
];

/// The color of the `index`-th line; repeats after eight.
pub(super) fn color(index: usize) -> RGBColor {
    PALETTE[index % PALETTE.len()]
}

/// The error for a plot that cannot be drawn or written.
pub(super) fn failed(path: &Path, error: impl Display) -> TrainError {
    TrainError::new(format!("cannot write the plot {}: {error}", path.display()))
}

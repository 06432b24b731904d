//! What all plots share: colors that people with any color vision can tell apart, and the files of a plot: an SVG,
//! which is sharp at every size, and beside it the image that YOLOv5 writes.

use std::error::Error;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use fs_err as fs;
use plotters::coord::Shift;
use plotters::prelude::*;
use yolo_base::palette::PALETTE;
use yolo_base::percent_g::percent_g;
use yolo_data::image::encode::by_extension;

use super::raster::Raster;
use crate::error::TrainError;

/// The color of the `index`-th line; repeats after eight.
pub(super) fn color(index: usize) -> RGBColor {
    let [red, green, blue] = PALETTE[index % PALETTE.len()];
    RGBColor(red, green, blue)
}

/// A number at an axis: `2500`, not `2500.0`.
pub(super) fn tick(value: &f64) -> String {
    percent_g(*value, 6)
}

/// A plot, which draws itself as vectors and as pixels.
pub(super) trait Plot {
    /// Width and height.
    const SIZE: (u32, u32);

    /// Draws the plot on a white sheet of this size.
    fn draw<B: DrawingBackend>(&self, sheet: &DrawingArea<B, Shift>) -> Result<(), Box<dyn Error>>
    where
        B::ErrorType: 'static;
}

/// Writes a plot to `path`, an SVG file, and beside it with the `extension` of an image. Returns `path`.
///
/// # Errors
/// When a file cannot be written.
pub(super) fn write<P: Plot>(plot: &P, path: &Path, extension: &str) -> Result<PathBuf, TrainError> {
    write_svg(plot, path).map_err(|error| failed(path, error))?;
    let beside = path.with_extension(extension);
    let mut image = Raster::canvas(P::SIZE);
    plot.draw(&Raster::on(&mut image).into_drawing_area()).map_err(|error| failed(&beside, error))?;
    fs::write(&beside, by_extension(&beside, &image)?).map_err(|error| failed(&beside, error))?;
    Ok(path.to_owned())
}

fn write_svg<P: Plot>(plot: &P, path: &Path) -> Result<(), Box<dyn Error>> {
    let sheet = SVGBackend::new(path, P::SIZE).into_drawing_area();
    sheet.fill(&WHITE)?;
    plot.draw(&sheet)?;
    sheet.present()?;
    Ok(())
}

/// The error for a plot that cannot be drawn or written.
pub(super) fn failed(path: &Path, error: impl Display) -> TrainError {
    TrainError::new(format!("cannot write the plot {}: {error}", path.display()))
}

//! `results.svg` and `results.png`: the columns of `results.csv` over the epochs, as ten small charts.

use std::error::Error;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use yolo_plan::results::{self, COLUMNS, Row};

use super::plot_style::{Plot, color, failed, tick, write};
use crate::error::TrainError;

/// The columns of the charts, in reading order: validation losses are below those of training.
const CHARTS: [usize; 10] = [1, 2, 3, 4, 5, 8, 9, 10, 6, 7];

/// Draws the results file `csv` to `path`, and as a PNG file beside it; the charts are empty if it has no rows.
///
/// # Errors
/// When `csv` cannot be read or `path` cannot be written.
pub fn plot_results(csv: &Path, path: &Path) -> Result<(), TrainError> {
    let rows = results::read_whole_rows(csv).map_err(|error| failed(path, error))?;
    write(&Results(&rows), path, "png").map(|_| ())
}

/// The rows of the file.
struct Results<'a>(&'a [Row]);

impl Plot for Results<'_> {
    const SIZE: (u32, u32) = (1500, 620);

    fn draw<B: DrawingBackend>(&self, sheet: &DrawingArea<B, Shift>) -> Result<(), Box<dyn Error>>
    where
        B::ErrorType: 'static,
    {
        let rows = self.0;
        let last_epoch = rows.last().map_or(1.0, |row| row[0]).max(1.0);
        for (area, column) in sheet.split_evenly((2, 5)).iter().zip(CHARTS) {
            let points: Vec<(f64, f64)> =
                rows.iter().map(|row| (row[0], row[column])).filter(|point| point.1.is_finite()).collect();
            let highest = points.iter().map(|point| point.1).fold(0.0, f64::max);
            let highest = if highest > 0.0 { highest * 1.05 } else { 1.0 };
            let mut chart = ChartBuilder::on(area)
                .caption(COLUMNS[column], ("sans-serif", 22))
                .margin(8)
                .x_label_area_size(28)
                .y_label_area_size(56)
                .build_cartesian_2d(0.0..last_epoch, 0.0..highest)?;
            chart
                .configure_mesh()
                .x_labels(5)
                .y_labels(5)
                .x_label_formatter(&tick)
                .y_label_formatter(&tick)
                .label_style(("sans-serif", 16))
                .light_line_style(TRANSPARENT)
                .draw()?;
            chart.draw_series(LineSeries::new(points.iter().copied(), color(0).stroke_width(2)))?;
            if points.len() < 40 {
                chart.draw_series(points.iter().map(|&point| Circle::new(point, 3, color(0).filled())))?;
            }
        }
        Ok(())
    }
}

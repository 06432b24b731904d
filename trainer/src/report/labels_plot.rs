//! `labels.svg`: the labels of a data set at a glance: their number per class, the positions of
//! their centers, and their sizes, as fractions of the image.

use std::path::Path;

use plotters::prelude::*;
use yolo_data::scan::Sample;

use super::plot_style::{color, failed};
use crate::error::TrainError;

/// Cells per side of the two maps.
const CELLS: usize = 50;
/// The bars have names if there are at most this many classes.
const NAMED: usize = 30;

/// Draws the labels of `samples` to `path`.
///
/// # Errors
/// When the file cannot be written.
pub fn plot_labels(samples: &[Sample], names: &[String], path: &Path) -> Result<(), TrainError> {
    draw(samples, names, path).map_err(|error| failed(path, error))
}

fn draw(samples: &[Sample], names: &[String], path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut counts = vec![0_usize; names.len()];
    let (mut centers, mut sizes) = (Map::default(), Map::default());
    for label in samples.iter().flat_map(|sample| &sample.boxes) {
        let [class, x, y, w, h] = *label;
        if let Some(count) = counts.get_mut(class as usize) {
            *count += 1;
        }
        centers.add(x, y);
        sizes.add(w, h);
    }
    let sheet = SVGBackend::new(path, (1500, 520)).into_drawing_area();
    sheet.fill(&WHITE)?;
    let [bars, places, extents] = sheet.split_evenly((1, 3)).try_into().map_err(|_| "three panels")?;
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let mut chart = ChartBuilder::on(&bars)
        .caption("labels per class", ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(if names.len() <= NAMED { 90 } else { 24 })
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..names.len().max(1) as f64, 0.0..most as f64 * 1.05)?;
    chart.configure_mesh().disable_x_mesh().x_labels(0).light_line_style(TRANSPARENT).draw()?;
    chart.draw_series(counts.iter().enumerate().map(|(class, &count)| {
        let left = class as f64;
        Rectangle::new([(left + 0.1, 0.0), (left + 0.9, count as f64)], color(class).filled())
    }))?;
    if names.len() <= NAMED {
        let style = ("sans-serif", 13).into_text_style(&bars).transform(FontTransform::Rotate90);
        for (class, name) in names.iter().enumerate() {
            let (x, y) = chart.backend_coord(&(class as f64 + 0.4, 0.0));
            let (left, top) = bars.get_base_pixel();
            bars.draw_text(name, &style, (x - left, y - top + 6))?;
        }
    }
    centers.draw(&places, "box centers", ["x", "y"], true)?;
    sizes.draw(&extents, "box sizes", ["width", "height"], false)?;
    sheet.present()?;
    Ok(())
}

/// Counts of points in the cells of the unit square. The size of the plot does not depend on the
/// number of points.
struct Map {
    counts: Vec<u32>,
}

impl Default for Map {
    fn default() -> Self {
        Self { counts: vec![0; CELLS * CELLS] }
    }
}

impl Map {
    fn add(&mut self, x: f32, y: f32) {
        let cell = |share: f32| ((share * CELLS as f32) as usize).min(CELLS - 1);
        self.counts[cell(y) * CELLS + cell(x)] += 1;
    }

    /// Draws the cells, darker where there are more points. With `downwards`, y grows as in images.
    fn draw<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, plotters::coord::Shift>,
        caption: &str,
        [x, y]: [&str; 2],
        downwards: bool,
    ) -> Result<(), Box<dyn std::error::Error>>
    where
        B::ErrorType: 'static,
    {
        let range = if downwards { 1.0..0.0 } else { 0.0..1.0 };
        let mut chart = ChartBuilder::on(area)
            .caption(caption, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(50)
            .build_cartesian_2d(0.0..1.0, range)?;
        chart.configure_mesh().x_desc(x).y_desc(y).disable_mesh().draw()?;
        let most = f64::from(self.counts.iter().copied().max().unwrap_or(0).max(1));
        let side = 1.0 / CELLS as f64;
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        chart.draw_series(filled.map(|(cell, &count)| {
            let (left, top) = ((cell % CELLS) as f64 * side, (cell / CELLS) as f64 * side);
            // A single label must be visible too.
            let ink = color(0).mix(0.15 + 0.85 * f64::from(count) / most);
            Rectangle::new([(left, top), (left + side, top + side)], ink.filled())
        }))?;
        Ok(())
    }
}

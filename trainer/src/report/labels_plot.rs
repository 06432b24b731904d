//! `labels.svg` and `labels.jpg`: the labels of a data set at a glance: their number per class, the boxes on each
//! other, the positions of their centers, and their sizes, as fractions of the image.

use std::error::Error;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use yolo_data::scan::Sample;

use super::plot_style::{Plot, color, write};
use crate::error::TrainError;

/// Cells per side of the two maps.
const CELLS: usize = 50;
/// The bars have names if there are at most this many classes.
const NAMED: usize = 30;
/// The most boxes that are drawn on each other.
const BOXES: usize = 500;

/// Draws the labels of `samples` to `path`, and as a JPEG file beside it.
///
/// # Errors
/// When the file cannot be written.
pub fn plot_labels(samples: &[Sample], names: &[String], path: &Path) -> Result<(), TrainError> {
    write(&Labels { samples, names }, path, "jpg").map(|_| ())
}

/// The labels of a split, and the names of the classes.
struct Labels<'a> {
    samples: &'a [Sample],
    names: &'a [String],
}

impl Plot for Labels<'_> {
    const SIZE: (u32, u32) = (1000, 1000);

    fn draw<B: DrawingBackend>(&self, sheet: &DrawingArea<B, Shift>) -> Result<(), Box<dyn Error>>
    where
        B::ErrorType: 'static,
    {
        let Self { samples, names } = *self;
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
        let panels: [_; 4] = sheet.split_evenly((2, 2)).try_into().map_err(|_| "four panels")?;
        let [bars, boxes, places, extents] = panels;
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
        draw_boxes(samples, &boxes)?;
        centers.draw(&places, "box centers", ["x", "y"], true)?;
        sizes.draw(&extents, "box sizes", ["width", "height"], false)?;
        Ok(())
    }
}

/// Draws boxes from all parts of the split on each other, with their centers in the middle.
fn draw_boxes<B: DrawingBackend>(
    samples: &[Sample],
    area: &DrawingArea<B, Shift>,
) -> Result<(), Box<dyn Error>>
where
    B::ErrorType: 'static,
{
    let mut chart = ChartBuilder::on(area)
        .caption("boxes", ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d(0.0..1.0, 0.0..1.0)?;
    chart.configure_mesh().x_desc("width").y_desc("height").disable_mesh().draw()?;
    let all = || samples.iter().flat_map(|sample| &sample.boxes);
    let every = all().count().div_ceil(BOXES).max(1);
    chart.draw_series(all().step_by(every).map(|&[class, _, _, width, height]| {
        let half = [f64::from(width), f64::from(height)].map(|side| side.clamp(0.0, 1.0) / 2.0);
        let corners = [(0.5 - half[0], 0.5 - half[1]), (0.5 + half[0], 0.5 + half[1])];
        Rectangle::new(corners, color(class as usize).stroke_width(1))
    }))?;
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
        area: &DrawingArea<B, Shift>,
        caption: &str,
        [x, y]: [&str; 2],
        downwards: bool,
    ) -> Result<(), Box<dyn Error>>
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

//! `labels.svg` and `labels.jpg`: the labels of a data set at a glance: their number per class, the boxes on each
//! other, the positions of their centers, and their sizes, as fractions of the image.

use std::error::Error;
use std::path::Path;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use yolo_data::scan::Sample;

use super::plot_style::{Plot, color, tick, write};
use crate::error::TrainError;

/// Cells per side of the two maps.
const CELLS: usize = 50;
/// The bars have names if there are at most this many classes.
const NAMED: usize = 30;
/// Letters of captions, and of everything else.
const CAPTION: i32 = 28;
const LETTERS: i32 = 20;
/// Room for the numbers and the name of an axis.
const AXIS: i32 = 64;
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
            .caption("labels per class", ("sans-serif", CAPTION))
            .margin(12)
            .x_label_area_size(if names.len() <= NAMED { 120 } else { 24 })
            .y_label_area_size(AXIS + 16)
            .build_cartesian_2d(0.0..names.len().max(1) as f64, 0.0..most as f64 * 1.05)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(0)
            .y_labels(6)
            .y_label_formatter(&tick)
            .label_style(("sans-serif", LETTERS))
            .light_line_style(TRANSPARENT)
            .draw()?;
        chart.draw_series(counts.iter().enumerate().map(|(class, &count)| {
            let left = class as f64;
            Rectangle::new([(left + 0.1, 0.0), (left + 0.9, count as f64)], color(class).filled())
        }))?;
        if names.len() <= NAMED {
            let letters = (360 / names.len() as i32).clamp(12, LETTERS);
            let style = ("sans-serif", letters).into_text_style(&bars).transform(FontTransform::Rotate90);
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
        .caption("boxes", ("sans-serif", CAPTION))
        .margin(12)
        .x_label_area_size(AXIS)
        .y_label_area_size(AXIS + 8)
        .build_cartesian_2d(0.0..1.0, 0.0..1.0)?;
    named_axes(&mut chart, ["width", "height"])?;
    let all = || samples.iter().flat_map(|sample| &sample.boxes);
    let every = all().count().div_ceil(BOXES).max(1);
    chart.draw_series(all().step_by(every).map(|&[class, _, _, width, height]| {
        let half = [f64::from(width), f64::from(height)].map(|side| side.clamp(0.0, 1.0) / 2.0);
        let corners = [(0.5 - half[0], 0.5 - half[1]), (0.5 + half[0], 0.5 + half[1])];
        Rectangle::new(corners, color(class as usize).stroke_width(1))
    }))?;
    Ok(())
}

/// Draws axes from 0 to 1 with these names.
fn named_axes<B: DrawingBackend>(
    chart: &mut ChartContext<'_, B, Cartesian2d<RangedCoordf64, RangedCoordf64>>,
    [x, y]: [&str; 2],
) -> Result<(), Box<dyn Error>>
where
    B::ErrorType: 'static,
{
    let letters = ("sans-serif", LETTERS);
    chart
        .configure_mesh()
        .x_desc(x)
        .y_desc(y)
        .x_labels(6)
        .y_labels(6)
        .x_label_formatter(&tick)
        .y_label_formatter(&tick)
        .label_style(letters)
        .axis_desc_style(letters)
        .disable_mesh()
        .draw()?;
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
        axes: [&str; 2],
        downwards: bool,
    ) -> Result<(), Box<dyn Error>>
    where
        B::ErrorType: 'static,
    {
        let range = if downwards { 1.0..0.0 } else { 0.0..1.0 };
        let mut chart = ChartBuilder::on(area)
            .caption(caption, ("sans-serif", CAPTION))
            .margin(12)
            .x_label_area_size(AXIS)
            .y_label_area_size(AXIS + 8)
            .build_cartesian_2d(0.0..1.0, range)?;
        named_axes(&mut chart, axes)?;
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

//! `study.svg` and `study.png`: what accuracy costs, mAP50-95 over the milliseconds per image at the image sizes of a study, with
//! one line for each weights file.

use std::error::Error;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::plot_style::{Plot, color, tick, write};
use crate::error::TrainError;

/// The measurements of a weights file.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyLine {
    /// The name in the legend.
    pub name: String,
    /// In ascending order of the image size.
    pub points: Vec<StudyPoint>,
}

/// What was measured at one image size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StudyPoint {
    /// In pixels.
    pub image_size: usize,
    /// Preprocessing, inference and suppression of an image.
    pub milliseconds: f64,
    /// 0 to 1.
    pub map50_95: f64,
}

/// Draws a study to `path`, and as a PNG file beside it.
///
/// # Errors
/// When `path` cannot be written.
pub fn plot_study(lines: &[StudyLine], path: &Path) -> Result<(), TrainError> {
    write(&Study(lines), path, "png").map(|_| ())
}

/// The lines of the plot.
struct Study<'a>(&'a [StudyLine]);

impl Plot for Study<'_> {
    const SIZE: (u32, u32) = (900, 600);

    fn draw<B: DrawingBackend>(&self, sheet: &DrawingArea<B, Shift>) -> Result<(), Box<dyn Error>>
    where
        B::ErrorType: 'static,
    {
        let lines = self.0;
        let points = || lines.iter().flat_map(|line| &line.points);
        // Room for the sizes next to the points, and an axis where everything is zero.
        let end = |values: &mut dyn Iterator<Item = f64>| {
            let highest = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
            if highest > 0.0 { highest * 1.1 } else { 1.0 }
        };
        let slowest = end(&mut points().map(|point| point.milliseconds));
        let best = end(&mut points().map(|point| point.map50_95));
        let mut chart = ChartBuilder::on(sheet)
            .margin(16)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..slowest, 0.0..best)?;
        chart
            .configure_mesh()
            .x_desc("Milliseconds per image")
            .y_desc("mAP50-95")
            .x_label_formatter(&tick)
            .y_label_formatter(&tick)
            .light_line_style(TRANSPARENT)
            .draw()?;
        for (index, line) in lines.iter().enumerate() {
            let ink = color(index);
            let of_line = || line.points.iter().map(|point| (point.milliseconds, point.map50_95));
            chart
                .draw_series(LineSeries::new(of_line(), ink.stroke_width(2)))?
                .label(line.name.as_str())
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], ink.stroke_width(2)));
            chart.draw_series(of_line().map(|point| Circle::new(point, 4, ink.filled())))?;
            chart.draw_series(line.points.iter().map(|point| {
                let text = EmptyElement::at((point.milliseconds, point.map50_95));
                text + Text::new(point.image_size.to_string(), (6, -14), ("sans-serif", 13))
            }))?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_weights_file_and_image_size_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("study.svg");
        let point = |image_size: usize| StudyPoint {
            image_size,
            milliseconds: image_size as f64 / 100.0,
            map50_95: 0.3,
        };
        let line = |name: &str| StudyLine { name: name.to_owned(), points: vec![point(256), point(1536)] };
        plot_study(&[line("yolov5n"), line("yolov5s")], &path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        for text in ["yolov5n", "yolov5s", "256", "1536", "Milliseconds per image", "mAP50-95"] {
            assert!(svg.contains(text), "{text} is missing");
        }
    }

    #[test]
    fn a_study_that_found_nothing_has_a_plot_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("study.svg");
        plot_study(&[StudyLine { name: "nothing".to_owned(), points: Vec::new() }], &path).unwrap();
        assert!(path.is_file() && path.with_extension("png").is_file());
    }
}

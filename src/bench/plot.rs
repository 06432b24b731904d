//! The tables as a plot: the speed-up over the number of devices, and images per second over the batch.

use std::error::Error;

use plotters::prelude::*;
use yolo_base::palette::PALETTE;
use yolo_plan::bench_tables::{Row, Tables};

/// Width and height of a chart in pixels.
const CHART: (u32, u32) = (640, 420);

/// A line of a chart.
struct Line {
    name: &'static str,
    color: usize,
    points: Vec<(f64, f64)>,
}

/// A chart.
struct Chart {
    caption: &'static str,
    x: &'static str,
    y: &'static str,
    lines: Vec<Line>,
}

/// The tables that have rows as an SVG image.
///
/// # Errors
/// When the image cannot be drawn.
pub(crate) fn plot(tables: &Tables) -> Result<String, Box<dyn Error>> {
    let mut charts = Vec::new();
    if !tables.scaling.is_empty() {
        charts.push(scaling(&tables.scaling));
    }
    if !tables.batches.is_empty() {
        charts.push(batches(&tables.batches));
    }
    let mut image = String::new();
    {
        let size = (CHART.0 * charts.len().max(1) as u32, CHART.1);
        let sheet = SVGBackend::with_string(&mut image, size).into_drawing_area();
        sheet.fill(&WHITE)?;
        for (area, chart) in sheet.split_evenly((1, charts.len().max(1))).iter().zip(&charts) {
            chart.draw(area)?;
        }
        sheet.present()?;
    }
    Ok(image)
}

fn scaling(rows: &[Row]) -> Chart {
    let devices = |row: &Row| row.devices.len() as f64;
    let speed_up = |row: &Row| Some((devices(row), row.outcome.epochs()?.speed_up?));
    let one = rows.iter().find(|row| row.devices.len() == 1);
    let ideal = |row: &Row| Some((devices(row), row.ideal_speed_up(one?)));
    Chart {
        caption: "Speed-up",
        x: "devices",
        y: "times one device",
        lines: vec![
            Line { name: "ideal", color: 7, points: rows.iter().filter_map(ideal).collect() },
            Line { name: "measured", color: 0, points: rows.iter().filter_map(speed_up).collect() },
        ],
    }
}

fn batches(rows: &[Row]) -> Chart {
    let line = |name, color, devices| {
        let of_series = rows.iter().filter(|row| row.devices.len() == devices);
        let point = |row: &Row| Some((row.batch as f64, row.outcome.epochs()?.images_per_second.median));
        Line { name, color, points: of_series.filter_map(point).collect() }
    };
    let lines = vec![line("one device", 0, 1), line("two devices", 1, 2)];
    Chart {
        caption: "Training",
        x: "images per step",
        y: "images per second",
        lines: lines.into_iter().filter(|line| !line.points.is_empty()).collect(),
    }
}

impl Chart {
    fn draw(&self, area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>) -> Result<(), Box<dyn Error>> {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let last = points().map(|point| point.0).fold(1.0, f64::max);
        let highest = points().map(|point| point.1).fold(0.0, f64::max);
        let top = if highest > 0.0 { highest * 1.05 } else { 1.0 };
        let mut chart = ChartBuilder::on(area)
            .caption(self.caption, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..last * 1.05, 0.0..top)?;
        chart
            .configure_mesh()
            .x_desc(self.x)
            .y_desc(self.y)
            .x_labels(8)
            .y_labels(6)
            .x_label_formatter(&|value| whole(*value))
            .light_line_style(TRANSPARENT)
            .draw()?;
        for line in &self.lines {
            let [red, green, blue] = PALETTE[line.color];
            let color = RGBColor(red, green, blue);
            let points = line.points.iter().copied();
            chart
                .draw_series(LineSeries::new(points.clone(), color.stroke_width(2)))?
                .label(line.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
            chart.draw_series(points.map(|point| Circle::new(point, 3, color.filled())))?;
        }
        if !self.lines.is_empty() {
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::LowerRight)
                .background_style(WHITE)
                .draw()?;
        }
        Ok(())
    }
}

/// The label of a whole number; the marks between have none.
fn whole(value: f64) -> String {
    if (value - value.round()).abs() < 1e-6 { format!("{value:.0}") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use yolo_plan::bench_report::{Rate, Together};
    use yolo_plan::bench_tables::Outcome;

    use super::*;
    use crate::bench::sample_tables::{self, tables};

    fn row(devices: usize, batch: usize, speed: f64) -> Row {
        let outcome = Outcome::of(&Together {
            training: vec![Rate::new(100, 100.0 / speed)],
            training_images: 100,
            validation: Vec::new(),
            validation_images: 0,
            memory: vec![1],
        });
        sample_tables::row("cuda:0", devices, batch, outcome)
    }

    #[test]
    fn each_table_has_a_chart_with_its_points() {
        let rows = vec![row(1, 4, 100.0), row(1, 8, 120.0), row(2, 4, 150.0)];
        let image = plot(&tables(vec![row(1, 16, 100.0)], rows)).unwrap();
        roxmltree::Document::parse(&image).unwrap();
        for text in ["Speed-up", "Training", "one device", "two devices", "images per second", "ideal"] {
            assert!(image.contains(text), "{text} is not in the plot");
        }
        // Speed-up has a point of the ideal; training has three. The row of one device was compared with none.
        assert_eq!(image.matches("<circle").count(), 4);
        assert!(image.contains("width=\"1280\""));
        // There are no half devices.
        assert_eq!((whole(2.0), whole(0.5)), ("2".to_owned(), String::new()));
    }

    #[test]
    fn rows_without_numbers_leave_a_chart_without_points() {
        let failed = Row { outcome: Outcome::Failed { message: "gone".to_owned() }, ..row(1, 4, 1.0) };
        let image = plot(&tables(Vec::new(), vec![failed])).unwrap();
        roxmltree::Document::parse(&image).unwrap();
        assert_eq!(image.matches("<circle").count(), 0);
    }
}

//! The curves of a validation: precision over recall, and F1, precision and recall over the
//! confidence threshold. Each class has a thin line, the mean a thick one.

use std::error::Error;
use std::path::{Path, PathBuf};

use plotters::coord::Shift;
use plotters::prelude::*;

use super::plot_style::{Plot, color, tick, write};
use crate::error::TrainError;
use crate::metrics::{ClassScore, Curves};

/// The legend names the classes if there are at most this many.
const LEGEND: usize = 20;

/// One of the curves of a class.
type CurveOf = fn(&Curves) -> &[f64];

/// Draws `PR_curve.svg`, `F1_curve.svg`, `P_curve.svg` and `R_curve.svg` into `folder`, each with a PNG file
/// beside it, and returns their paths. Draws nothing if no class has labels.
///
/// # Errors
/// When a file cannot be written.
pub fn plot_curves(
    scores: &[ClassScore],
    names: &[String],
    folder: &Path,
) -> Result<Vec<PathBuf>, TrainError> {
    if scores.is_empty() {
        return Ok(Vec::new());
    }
    let plots: [(&str, &str, &str, CurveOf); 4] = [
        ("PR_curve.svg", "Recall", "Precision at IoU 0.5", |curves| &curves.precision_by_recall),
        ("F1_curve.svg", "Confidence", "F1", |curves| &curves.f1),
        ("P_curve.svg", "Confidence", "Precision", |curves| &curves.precision),
        ("R_curve.svg", "Confidence", "Recall", |curves| &curves.recall),
    ];
    plots
        .into_iter()
        .map(|(file, x, y, curve_of)| {
            write(&CurvesPlot { scores, names, axes: (x, y), curve_of }, &folder.join(file), "png")
        })
        .collect()
}

/// One kind of curves, with the names of the axes.
struct CurvesPlot<'a> {
    scores: &'a [ClassScore],
    names: &'a [String],
    axes: (&'a str, &'a str),
    curve_of: CurveOf,
}

impl Plot for CurvesPlot<'_> {
    const SIZE: (u32, u32) = (900, 600);

    fn draw<B: DrawingBackend>(&self, sheet: &DrawingArea<B, Shift>) -> Result<(), Box<dyn Error>>
    where
        B::ErrorType: 'static,
    {
        let Self { scores, names, axes: (x, y), curve_of } = *self;
        let mut chart = ChartBuilder::on(sheet)
            .margin(16)
            .x_label_area_size(40)
            .y_label_area_size(50)
            .build_cartesian_2d(0.0..1.0, 0.0..1.0)?;
        chart
            .configure_mesh()
            .x_desc(x)
            .y_desc(y)
            .x_label_formatter(&tick)
            .y_label_formatter(&tick)
            .light_line_style(TRANSPARENT)
            .draw()?;
        for (index, score) in scores.iter().enumerate() {
            let ink = color(index);
            let line =
                chart.draw_series(LineSeries::new(points(curve_of(&score.curves)), ink.stroke_width(1)))?;
            if scores.len() <= LEGEND {
                let name = names.get(score.class).map_or("?", String::as_str);
                line.label(format!("{name} {:.3}", score.ap50()))
                    .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], ink.stroke_width(1)));
            }
        }
        let mean: Vec<f64> = (0..curve_of(&scores[0].curves).len())
            .map(|at| {
                scores.iter().map(|score| curve_of(&score.curves)[at]).sum::<f64>() / scores.len() as f64
            })
            .collect();
        let map50 = scores.iter().map(ClassScore::ap50).sum::<f64>() / scores.len() as f64;
        chart
            .draw_series(LineSeries::new(points(&mean), BLUE.stroke_width(3)))?
            .label(format!("all classes {map50:.3} mAP@0.5"))
            .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], BLUE.stroke_width(3)));
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerLeft)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()?;
        Ok(())
    }
}

fn points(curve: &[f64]) -> impl Iterator<Item = (f64, f64)> {
    let last = curve.len().saturating_sub(1).max(1) as f64;
    curve.iter().enumerate().map(move |(index, &value)| (index as f64 / last, value))
}

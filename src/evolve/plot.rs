//! `evolve.svg`: the fitness over each hyperparameter, one small chart per hyperparameter, as YOLOv5's `evolve.png`.

use std::error::Error;

use plotters::prelude::*;
use yolo_base::palette::PALETTE;
use yolo_base::percent_g::percent_g;
use yolo_plan::evolve::{Gene, Table};

/// Charts next to each other.
const COLUMNS: usize = 6;
/// Width and height of a chart in pixels.
const CHART: (u32, u32) = (240, 200);

/// The table as an SVG image.
///
/// # Errors
/// When the image cannot be drawn.
pub(crate) fn plot(table: &Table) -> Result<String, Box<dyn Error>> {
    let genes = table.genes().all();
    let rows = genes.len().div_ceil(COLUMNS);
    let mut image = String::new();
    {
        let size = (CHART.0 * COLUMNS as u32, CHART.1 * rows as u32);
        let sheet = SVGBackend::with_string(&mut image, size).into_drawing_area();
        sheet.fill(&WHITE)?;
        for (index, (area, gene)) in sheet.split_evenly((rows, COLUMNS)).iter().zip(genes).enumerate() {
            draw(table, index, gene, area)?;
        }
        sheet.present()?;
    }
    Ok(image)
}

fn draw(
    table: &Table,
    index: usize,
    gene: &Gene,
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
) -> Result<(), Box<dyn Error>> {
    let points: Vec<(f64, f64)> = table.rows().iter().map(|row| (row.values[index], row.fitness())).collect();
    let best = table.best().and_then(|best| points.get(best).copied());
    let caption = match best {
        Some((value, _)) => format!("{} = {}", gene.key, percent_g(value, 3)),
        None => gene.key.to_owned(),
    };
    let (low, high) = range(points.iter().map(|point| point.0));
    let highest = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let top = if highest > 0.0 { highest * 1.05 } else { 1.0 };
    let mut chart = ChartBuilder::on(area)
        .caption(caption, ("sans-serif", 15))
        .margin(6)
        .x_label_area_size(22)
        .y_label_area_size(42)
        .build_cartesian_2d(low..high, 0.0..top)?;
    chart
        .configure_mesh()
        .x_labels(3)
        .y_labels(4)
        .x_label_formatter(&|value| percent_g(*value, 3))
        .y_label_formatter(&|value| percent_g(*value, 3))
        .light_line_style(TRANSPARENT)
        .draw()?;
    let color = |index: usize| {
        let [red, green, blue] = PALETTE[index];
        RGBColor(red, green, blue)
    };
    chart.draw_series(points.iter().map(|&point| Circle::new(point, 2, color(0).filled())))?;
    // The best one has a form of its own, and not only a color.
    chart.draw_series(best.iter().map(|&point| Cross::new(point, 6, color(5).stroke_width(2))))?;
    Ok(())
}

/// The range of the values, with a margin.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low > high {
        return (0.0, 1.0);
    }
    let margin = match (high - low) * 0.05 {
        0.0 => (high.abs() * 0.5).max(0.5),
        margin => margin,
    };
    (low - margin, high + margin)
}

#[cfg(test)]
mod tests {
    use yolo_plan::event::Metrics;
    use yolo_plan::evolve::{Generation, Genes};
    use yolo_plan::hyp::HyperParameters;

    use super::*;

    #[test]
    fn each_hyperparameter_has_a_chart_with_all_generations() {
        let genes = Genes::new(true);
        let mut table = Table::new(genes);
        let mut values = genes.of_hyp(&HyperParameters::low());
        table.push(Generation::failed(values.clone()));
        values[0] = 0.02;
        let metrics = Metrics { precision: 0.5, recall: 0.5, map50: 0.6, map50_95: 0.4 };
        table.push(Generation { metrics, losses: [0.1; 3], values });
        let image = plot(&table).unwrap();
        roxmltree::Document::parse(&image).unwrap();
        assert_eq!(image.matches("<circle").count(), 2 * genes.all().len());
        assert!(image.contains("lr0 = 0.02") && image.contains("copy_paste = 0"));
    }

    #[test]
    fn an_empty_table_is_an_empty_plot() {
        let image = plot(&Table::new(Genes::new(false))).unwrap();
        roxmltree::Document::parse(&image).unwrap();
        assert_eq!(image.matches("<circle").count(), 0);
    }
}

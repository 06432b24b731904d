//! What changed over the epochs: the losses of training and validation, the metrics, and the learning rates.

use yolo_plan::results::{COLUMNS, Row, best};

use super::summary::best_epoch;
use crate::chart::{Chart, Names, Series};
use crate::html::{Cell, details, table};
use crate::run_files::RunFiles;

/// The section about training, which is empty for a validation.
pub(crate) fn section(run: &RunFiles) -> String {
    let rows = &run.results;
    let Some(best) = best(rows) else { return String::new() };
    let over = |column: usize| rows.iter().map(move |row| (row[0] + 1.0, row[column]));
    // As in YOLOv5, 0 stands for what was not measured.
    let measured = |column: usize| {
        over(column).zip(rows).filter(|(_, row)| row[4..=10] != [0.0; 7]).map(|(point, _)| point)
    };
    let mark = (rows.len() > 1).then(|| (best[0] + 1.0, "best".to_owned()));
    let chart = |title: &str, highest: Option<f64>, series: Vec<Series>| {
        Chart {
            title: title.to_owned(),
            x: "epoch",
            highest,
            series,
            names: Names::AtEnds,
            mark: mark.clone(),
        }
        .figure()
    };
    let mut html =
        format!("<p>The dotted line is the best epoch: {}.</p>\n<div class=\"charts\">", best_epoch(best));
    for (title, train, val) in [("Box loss", 1, 8), ("Objectness loss", 2, 9), ("Class loss", 3, 10)] {
        html.push_str(&chart(
            title,
            None,
            vec![Series::new("train", over(train)), Series::new("val", measured(val))],
        ));
    }
    let names = ["precision", "recall", "mAP50", "mAP50-95"];
    let metrics = names.iter().zip(4..).map(|(name, column)| Series::new(*name, measured(column)));
    html.push_str(&chart("Metrics", Some(1.0), metrics.collect()));
    // The groups of the optimizer, in their order (spec §6).
    let rates = ["biases", "weights", "norms"];
    let rates = rates.iter().zip(11..).map(|(name, column)| Series::new(*name, over(column)));
    html.push_str(&chart("Learning rate", None, rates.collect()));
    html.push_str("</div>\n");
    html.push_str(
        "<p class=\"note\">Epochs count from 1 here. <code>results.csv</code>, <code>results.png</code> and TensorBoard count \
         from 0, as in YOLOv5.</p>\n",
    );
    html.push_str(&details("All epochs", &epochs(rows)));
    super::section("training", "Training", &html)
}

/// The rows of `results.csv`, with epochs from 1.
fn epochs(rows: &[Row]) -> String {
    let headings: Vec<String> = COLUMNS.iter().map(|column| format!("#{column}")).collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let cells = |row: &Row| {
        let rest = row[1..].iter().map(|value| Cell::number(yolo_base::percent_g::percent_g(*value, 4)));
        std::iter::once(Cell::number(row[0] + 1.0)).chain(rest).collect()
    };
    table("Epochs", &headings, &rows.iter().map(cells).collect::<Vec<_>>())
}

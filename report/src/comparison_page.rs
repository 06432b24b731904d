//! The comparison of runs as a page: metrics, curves on one axis, settings that differ, and classes.

use yolo_plan::results::Row;

use crate::chart::{Chart, Names, Series};
use crate::compare::{Comparison, EpochMetrics};
use crate::html::{Cell, bar, details, esc, table};
use crate::page::whole;
use crate::run_files::RunFiles;
use crate::sections::section;

/// Classes in sight; the others are shown when the reader wants.
const LISTED: usize = 20;

/// The comparison of these runs as a complete HTML page.
pub fn comparison_page(comparison: &Comparison, runs: &[RunFiles]) -> String {
    let names: Vec<&str> = comparison.runs.iter().map(|run| run.name.as_str()).collect();
    let mut body = metrics(comparison);
    body.push_str(&curves(&names, runs));
    body.push_str(&settings(comparison, &names));
    body.push_str(&classes(comparison, &names));
    whole(&format!("Comparison of {}", yolo_base::format::list(&names)), &body)
}

fn metrics(comparison: &Comparison) -> String {
    let mut html: String = comparison
        .warnings
        .iter()
        .map(|warning| format!("<p class=\"warning\">{}.</p>\n", esc(warning)))
        .collect();
    let of_epoch = |name: &str, epochs: usize, epoch: &Option<EpochMetrics>| {
        let mut row = vec![Cell::text(name)];
        match epoch {
            // On a phone, what does not fit is at the right.
            Some(EpochMetrics { epoch, metrics, fitness }) => row.extend([
                Cell::Html(bar(metrics.map50_95, &format!("{:.3}", metrics.map50_95))),
                Cell::number(format!("{fitness:.4}")),
                Cell::number(format!("{:.3}", metrics.map50)),
                Cell::number(format!("{:.3}", metrics.precision)),
                Cell::number(format!("{:.3}", metrics.recall)),
                Cell::number(format!("{epoch} of {epochs}")),
            ]),
            None => row.extend(std::iter::repeat_n(Cell::number("–"), 6)),
        }
        row
    };
    let headings = ["Run", "mAP50-95", "#Fitness", "#mAP50", "#Precision", "#Recall", "#Epoch"];
    let runs = &comparison.runs;
    if runs.iter().any(|run| run.best.is_some()) {
        let best: Vec<_> = runs.iter().map(|run| of_epoch(&run.name, run.epochs, &run.best)).collect();
        let last: Vec<_> = runs.iter().map(|run| of_epoch(&run.name, run.epochs, &run.last)).collect();
        html.push_str(&table("Best epoch of each run", &headings, &best));
        html.push_str(&table("Last epoch of each run", &headings, &last));
    }
    if runs.iter().any(|run| run.validated.is_some()) {
        let validated: Vec<Vec<Cell>> = runs
            .iter()
            .map(|run| {
                let mut row = vec![Cell::text(&run.name)];
                row.extend(match run.validated {
                    Some(metrics) => [metrics.map50_95, metrics.map50, metrics.precision, metrics.recall]
                        .map(|value| Cell::number(format!("{value:.3}"))),
                    None => [(); 4].map(|()| Cell::number("–")),
                });
                row.push(Cell::number(run.seconds.map_or("–".to_owned(), yolo_base::format::duration)));
                row
            })
            .collect();
        let headings = ["Run", "#mAP50-95", "#mAP50", "#Precision", "#Recall", "#Time of the run"];
        html.push_str(&table("Final validation", &headings, &validated));
    }
    section("metrics", "Metrics", &html)
}

fn curves(names: &[&str], runs: &[RunFiles]) -> String {
    if runs.iter().all(|run| run.results.is_empty()) {
        return String::new();
    }
    let measured = |row: &&Row, column: usize| column < 4 || row[4..=10] != [0.0; 7];
    let chart = |(title, column, highest): (&str, usize, Option<f64>)| {
        let series = names.iter().zip(runs).map(|(name, run)| {
            let rows = run.results.iter().filter(|row| measured(row, column));
            Series::new(*name, rows.map(|row| (row[0] + 1.0, row[column])))
        });
        let (title, series) = (title.to_owned(), series.collect());
        Chart { title, x: "epoch", highest, series, names: Names::Below, mark: None }.figure()
    };
    let charts: String = [
        ("mAP50-95", 7, Some(1.0)),
        ("mAP50", 6, Some(1.0)),
        ("Validation: box loss", 8, None),
        ("Validation: objectness loss", 9, None),
        ("Validation: class loss", 10, None),
        ("Training: box loss", 1, None),
        ("Training: objectness loss", 2, None),
        ("Training: class loss", 3, None),
    ]
    .map(chart)
    .concat();
    section("curves", "Curves", &format!("<div class=\"charts\">{charts}</div>\n"))
}

fn settings(comparison: &Comparison, names: &[&str]) -> String {
    if comparison.settings.is_empty() {
        return section("settings", "Settings", "<p>All settings are the same.</p>\n");
    }
    let headings: Vec<&str> = std::iter::once("Setting").chain(names.iter().copied()).collect();
    let row = |setting: &crate::compare::Differing| {
        let values = setting
            .values
            .iter()
            .map(|value| Cell::text(value.as_deref().filter(|value| !value.is_empty()).unwrap_or("–")));
        std::iter::once(Cell::text(&setting.name)).chain(values).collect()
    };
    let rows: Vec<Vec<Cell>> = comparison.settings.iter().map(row).collect();
    section("settings", "Settings", &table("Settings that differ", &headings, &rows))
}

fn classes(comparison: &Comparison, names: &[&str]) -> String {
    if comparison.classes.is_empty() {
        return String::new();
    }
    let numbers: Vec<String> = names.iter().map(|name| format!("#{name}")).collect();
    let mut headings = vec!["Class"];
    headings.extend(numbers.iter().map(String::as_str));
    headings.push("#Difference");
    let rows: Vec<Vec<Cell>> = comparison
        .classes
        .iter()
        .map(|class| {
            let value = |value: &Option<f64>| {
                Cell::number(value.map_or("–".to_owned(), |value| format!("{value:.3}")))
            };
            let mut row = vec![Cell::text(&class.class)];
            row.extend(class.map50_95.iter().map(value));
            row.push(Cell::number(format!("{:.3}", class.spread())));
            row
        })
        .collect();
    let shown = rows.len().min(LISTED);
    let mut html = table("mAP50-95 of each class, the largest differences first", &headings, &rows[..shown]);
    if shown < rows.len() {
        html.push_str(&details("The other classes", &table("The other classes", &headings, &rows[shown..])));
    }
    section("classes", "Classes", &html)
}

//! The metrics of each class, and the curves behind them.

use yolo_plan::event::ValRow;
use yolo_plan::report::{ClassCurves, ValidationFacts};

use super::{id_of, name_of};
use crate::chart::{Chart, Names, Series, Weight, short};
use crate::html::{Cell, bar, details, table};

/// With at most this many classes, each has a line of its own style.
const STYLED: usize = 7;

/// With more classes than this, only the worst are in sight.
const LISTED: usize = 25;
/// So many.
const WORST: usize = 10;

/// A curve of a class.
type CurveOf = fn(&ClassCurves) -> &[f64];

/// The section about a validation.
pub(crate) fn section(validation: &ValidationFacts, names: &[String]) -> String {
    let cells = |row: &ValRow| {
        let metrics = row.metrics;
        // On a phone, what does not fit is at the right.
        vec![
            Cell::text(&row.class),
            Cell::Html(bar(metrics.map50_95, &format!("{:.3}", metrics.map50_95))),
            Cell::number(format!("{:.3}", metrics.map50)),
            Cell::number(format!("{:.3}", metrics.precision)),
            Cell::number(format!("{:.3}", metrics.recall)),
            Cell::number(row.images),
            Cell::number(row.instances),
        ]
    };
    let rows = &validation.table.rows;
    let all: Vec<Vec<Cell>> = rows.iter().map(cells).collect();
    let headings = ["Class", "mAP50-95", "#mAP50", "#Precision", "#Recall", "#Images", "#Boxes"];
    let mut html = match rows.split_first() {
        Some((first, classes)) if classes.len() > LISTED => {
            let mut worst: Vec<&ValRow> = classes.iter().collect();
            worst.sort_by(|a, b| a.metrics.map50_95.total_cmp(&b.metrics.map50_95));
            let shown: Vec<_> =
                std::iter::once(first).chain(worst.into_iter().take(WORST)).map(cells).collect();
            let title = format!("All {} classes", classes.len());
            table(&format!("All classes together, and the {WORST} worst"), &headings, &shown)
                + &details(&title, &table(&title, &headings, &all))
        }
        _ => table("Metrics of each class", &headings, &all),
    };
    if !validation.curves.is_empty() {
        html.push_str("<div class=\"charts\">");
        let plots: [(&str, &'static str, CurveOf); 4] = [
            ("Precision over recall at IoU 0.5", "recall", |curves| &curves.precision_by_recall),
            ("F1 over confidence", "confidence", |curves| &curves.f1),
            ("Precision over confidence", "confidence", |curves| &curves.precision),
            ("Recall over confidence", "confidence", |curves| &curves.recall),
        ];
        for (title, x, curve_of) in plots {
            html.push_str(&chart(validation, names, title, x, curve_of));
        }
        html.push_str("</div>\n");
        html.push_str(&best_confidence(&validation.curves));
    }
    super::section(&id_of("results", &validation.title), &format!("Results of {}", validation.title), &html)
}

fn chart(
    validation: &ValidationFacts,
    names: &[String],
    title: &str,
    x: &'static str,
    curve_of: CurveOf,
) -> String {
    let curves = &validation.curves;
    let ap50 = |class: usize| {
        let name = name_of(names, class);
        validation.table.rows[1..].iter().find(|row| row.class == name).map_or(0.0, |row| row.metrics.map50)
    };
    // Of many classes, the three worst have a style, and the others are in the background.
    let mut by_score: Vec<usize> = curves.iter().map(|one| one.class).collect();
    by_score.sort_by(|a, b| ap50(*a).total_cmp(&ap50(*b)));
    let few = curves.len() <= STYLED;
    let mut series: Vec<Series> = curves
        .iter()
        .map(|one| {
            let weight =
                if few || by_score[..3].contains(&one.class) { Weight::Normal } else { Weight::Faint };
            let name = format!("{}, mAP50 {:.3}", name_of(names, one.class), ap50(one.class));
            Series::new(name, points(curve_of(one))).with(weight)
        })
        .collect();
    // What matters is drawn last, over the rest.
    series.sort_by_key(|series| series.weight != Weight::Faint);
    let mean = mean(curves, curve_of);
    series.push(Series::new("mean of all classes", points(&mean)).with(Weight::Thick));
    Chart { title: title.to_owned(), x, highest: Some(1.0), series, names: Names::Below, mark: None }.figure()
}

/// The mean over the classes.
fn mean(curves: &[ClassCurves], curve_of: CurveOf) -> Vec<f64> {
    let points = curves.iter().map(|one| curve_of(one).len()).min().unwrap_or(0);
    (0..points)
        .map(|at| curves.iter().map(|one| curve_of(one)[at]).sum::<f64>() / curves.len() as f64)
        .collect()
}

fn points(curve: &[f64]) -> Vec<(f64, f64)> {
    let last = curve.len().saturating_sub(1).max(1) as f64;
    curve.iter().enumerate().map(|(index, &value)| (index as f64 / last, value)).collect()
}

/// The confidence that is best for detection, in a sentence.
fn best_confidence(curves: &[ClassCurves]) -> String {
    let f1 = mean(curves, |one| &one.f1);
    let Some((at, best)) = points(&f1).into_iter().max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return String::new();
    };
    format!(
        "<p>The mean F1 is highest, {}, at confidence {}: a good threshold if missed objects and false detections cost \
         the same.</p>\n",
        short(best),
        short(at)
    )
}

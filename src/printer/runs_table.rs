//! Runs side by side as text: a row for each run, then a row for each setting and class that differs.

use yolo_report::{ComparedRun, Comparison, EpochMetrics};

/// Classes that are shown; the JSON and the page have all.
const CLASSES: usize = 20;
/// Letters of a name or a value; the end of a path says most.
const WIDTH: usize = 28;

/// The comparison as text.
pub(crate) fn runs_table(comparison: &Comparison) -> String {
    let runs = &comparison.runs;
    let names = names(runs);
    let mut text = String::new();
    let epoch = |run: &ComparedRun, name: &String, epoch: &Option<EpochMetrics>| match epoch {
        Some(EpochMetrics { epoch, metrics, fitness }) => vec![
            name.clone(),
            format!("{epoch}/{}", run.epochs),
            three(metrics.precision),
            three(metrics.recall),
            three(metrics.map50),
            three(metrics.map50_95),
            format!("{fitness:.4}"),
        ],
        None => std::iter::once(name.clone()).chain(std::iter::repeat_n("–".to_owned(), 6)).collect(),
    };
    if runs.iter().any(|run| run.best.is_some()) {
        for (title, of) in [
            ("Best epoch", (|run| &run.best) as fn(&ComparedRun) -> &Option<EpochMetrics>),
            ("Last epoch", |run| &run.last),
        ] {
            let mut rows = vec![words(&[title, "Epoch", "P", "R", "mAP50", "mAP50-95", "Fitness"])];
            rows.extend(runs.iter().zip(&names).map(|(run, name)| epoch(run, name, of(run))));
            text.push_str(&aligned(&rows));
        }
    }
    if runs.iter().any(|run| run.validated.is_some()) {
        let mut rows = vec![words(&["Final validation", "P", "R", "mAP50", "mAP50-95"])];
        rows.extend(runs.iter().zip(&names).map(|(run, name)| {
            let metrics = run.validated.map(|all| [all.precision, all.recall, all.map50, all.map50_95]);
            let values = metrics.map_or_else(|| [(); 4].map(|()| "–".to_owned()), |all| all.map(three));
            std::iter::once(name.clone()).chain(values).collect()
        }));
        text.push_str(&aligned(&rows));
    }
    if !comparison.settings.is_empty() {
        let mut rows: Vec<Vec<String>> =
            vec![std::iter::once("Setting".to_owned()).chain(names.iter().cloned()).collect()];
        rows.extend(comparison.settings.iter().map(|setting| {
            let values = setting.values.iter().map(|value| match value.as_deref() {
                None | Some("") => "–".to_owned(),
                Some(value) => end_of(value),
            });
            std::iter::once(setting.name.clone()).chain(values).collect()
        }));
        text.push_str(&aligned(&rows));
    }
    if !comparison.classes.is_empty() {
        let mut rows: Vec<Vec<String>> =
            vec![std::iter::once("mAP50-95 of class".to_owned()).chain(names.iter().cloned()).collect()];
        rows.extend(comparison.classes.iter().take(CLASSES).map(|class| {
            let values = class.map50_95.iter().map(|value| value.map_or_else(|| "–".to_owned(), three));
            std::iter::once(class.class.clone()).chain(values).collect()
        }));
        text.push_str(&aligned(&rows));
        if let Some(more) = comparison.classes.len().checked_sub(CLASSES).filter(|more| *more > 0) {
            text.push_str(&format!("and {more} more classes, which differ less\n"));
        }
    }
    text.trim_end().to_owned()
}

/// The names of the runs, or their ends if these tell them apart.
fn names(runs: &[ComparedRun]) -> Vec<String> {
    let ends: Vec<String> = runs.iter().map(|run| end_of(&run.name)).collect();
    let differ = ends.iter().enumerate().all(|(index, end)| !ends[index + 1..].contains(end));
    if differ { ends } else { runs.iter().map(|run| run.name.clone()).collect() }
}

/// A text, or its end after dots.
fn end_of(text: &str) -> String {
    let letters = text.chars().count();
    if letters <= WIDTH {
        return text.to_owned();
    }
    std::iter::once('…').chain(text.chars().skip(letters - WIDTH + 1)).collect()
}

fn three(value: f64) -> String {
    format!("{value:.3}")
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Rows as lines and an empty one: the first column to the left, the others to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().enumerate().map(|(column, cell)| match column {
            0 => format!("{cell:<0$}", width(0)),
            _ => format!("{cell:>0$}", width(column)),
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text + "\n"
}

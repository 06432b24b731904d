//! Renders the figures of a stage as tables: single figures as a list, those of the same subject as a row.
//! Shares of the time have a table of their own, because there are many.

use std::fmt::Write as _;

use super::text::{cell, number};
use super::types::{Figure, StageReport};

/// The tables of a stage's figures, except [`speeds`]; empty without figures.
pub(super) fn tables(stage: &StageReport) -> String {
    let select = |wanted: fn(&Figure) -> bool| -> Vec<&Figure> {
        stage.figures.iter().filter(|figure| wanted(figure)).collect()
    };
    let mut text = list(&select(|figure| figure.of.is_none()));
    text.push_str(&matrix(&select(is_share)));
    match text.is_empty() {
        true => text,
        false => format!("## Figures of {}\n\n{text}", stage.stage.name()),
    }
}

/// The table of everything that was measured of a subject, except shares; empty if nothing was.
pub(super) fn speeds(stage: &StageReport) -> String {
    let values = stage.figures.iter().filter(|figure| figure.of.is_some() && !is_share(figure));
    matrix(&values.collect::<Vec<_>>())
}

fn is_share(figure: &Figure) -> bool {
    figure.of.is_some() && figure.unit.starts_with("% of")
}

/// One row per figure.
fn list(figures: &[&Figure]) -> String {
    if figures.is_empty() {
        return String::new();
    }
    let mut text = String::from("| what | value |\n|---|---|\n");
    for figure in figures {
        let value = format!("{} {}", number(figure.value), figure.unit);
        let _ = writeln!(text, "| {} | {} |", cell(&figure.what), value.trim());
    }
    text.push('\n');
    text
}

/// One row per subject, one column per kind of figure, both in the order of their first figure.
fn matrix(figures: &[&Figure]) -> String {
    let mut columns: Vec<(&str, &str)> = Vec::new();
    let mut subjects: Vec<&str> = Vec::new();
    for figure in figures {
        let column = (figure.what.as_str(), figure.unit.as_str());
        if !columns.contains(&column) {
            columns.push(column);
        }
        let subject = figure.of.as_deref().unwrap_or_default();
        if !subjects.contains(&subject) {
            subjects.push(subject);
        }
    }
    if columns.is_empty() {
        return String::new();
    }
    // A unit of all columns is written once.
    let unit_of_all =
        columns.first().map(|column| column.1).filter(|unit| columns.iter().all(|c| c.1 == *unit));
    let mut text = match unit_of_all {
        Some(unit) => format!("| in {unit} |"),
        None => String::from("| |"),
    };
    for (what, unit) in &columns {
        let _ = match unit_of_all {
            Some(_) => write!(text, " {} |", cell(what)),
            None => write!(text, " {}, {unit} |", cell(what)),
        };
    }
    let _ = writeln!(text, "\n|---|{}", "---|".repeat(columns.len()));
    for subject in subjects {
        let _ = write!(text, "| {} |", cell(subject));
        for &(what, unit) in &columns {
            let is_it = |figure: &&&Figure| {
                figure.of.as_deref() == Some(subject) && figure.what == what && figure.unit == unit
            };
            let value = figures.iter().find(is_it).map(|figure| number(figure.value)).unwrap_or_default();
            let _ = write!(text, " {value} |");
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

//! Renders the figures of a stage as tables: single figures as a list, those of the same subject as a row.
//! Shares of the time have a table of their own, because there are many.

use std::fmt::Write as _;

use super::text::{cell, number};
use super::types::{Figure, StageReport};

/// The tables of a stage's figures; empty without figures.
pub(super) fn tables(stage: &StageReport) -> String {
    if stage.figures.is_empty() {
        return String::new();
    }
    let name = stage.stage.name();
    let (with_subject, single): (Vec<&Figure>, Vec<&Figure>) =
        stage.figures.iter().partition(|figure| figure.of.is_some());
    let (shares, values): (Vec<&Figure>, Vec<&Figure>) =
        with_subject.into_iter().partition(|figure| figure.unit.starts_with("% of"));
    let mut text = format!("## Figures of {name}\n\n");
    text.push_str(&list(&single));
    text.push_str(&matrix(&values));
    text.push_str(&matrix(&shares));
    text
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

//! The data set: its splits, its classes, and what is wrong with single files.

use yolo_plan::report::{RunReport, SplitFacts};

use super::name_of;
use crate::html::{Cell, bar, details, esc, table};

/// The section about the data set.
pub(crate) fn section(report: &RunReport) -> String {
    if report.splits.is_empty() {
        return String::new();
    }
    let mut html = splits(&report.splits);
    html.push_str(&classes(report));
    html.push_str(&absent(report));
    for split in report.splits.iter().filter(|split| split.all_messages > 0) {
        html.push_str(&messages(split));
    }
    super::section("data", "Data set", &html)
}

/// A row for each number, a column for each split.
fn splits(splits: &[SplitFacts]) -> String {
    let number = |of: &dyn Fn(&SplitFacts) -> usize| -> Vec<Cell> {
        splits.iter().map(|split| Cell::number(of(split))).collect()
    };
    let text = |of: &dyn Fn(&SplitFacts) -> String| -> Vec<Cell> {
        splits.iter().map(|split| Cell::number(of(split))).collect()
    };
    let size = |split: &SplitFacts, index: usize| {
        split
            .image_sizes
            .map_or_else(|| "–".to_owned(), |sizes| format!("{} × {}", sizes[index][0], sizes[index][1]))
    };
    let rows = [
        ("Images", number(&|split| split.images)),
        ("Boxes", number(&|split| split.boxes.iter().sum())),
        ("Images without label file", number(&|split| split.missing)),
        ("Images with empty label file", number(&|split| split.empty)),
        ("Corrupt images, ignored", number(&|split| split.corrupt)),
        ("Smallest image", text(&|split| size(split, 0))),
        ("Median image", text(&|split| size(split, 1))),
        ("Largest image", text(&|split| size(split, 2))),
        (
            "Side of boxes in pixels: small, median, large",
            text(&|split| match split.box_sides {
                Some(sides) => sides.map(|side| format!("{side:.0}")).join(", "),
                None => "–".to_owned(),
            }),
        ),
    ];
    let rows: Vec<Vec<Cell>> = rows
        .into_iter()
        .map(|(name, cells)| std::iter::once(Cell::text(name)).chain(cells).collect())
        .collect();
    let mut headings = vec![String::new()];
    headings.extend(splits.iter().map(|split| format!("#{}", split.split)));
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let note = "<p class=\"note\">The side of a box is √(width · height) in the image file; small and large are the 10th \
                and 90th percentile.</p>\n";
    table("Splits", &headings, &rows) + note
}

/// Boxes and images of each class.
fn classes(report: &RunReport) -> String {
    let most = report.splits.iter().flat_map(|split| &split.boxes).max().copied().unwrap_or(0).max(1);
    let rows: Vec<Vec<Cell>> = (0..report.names.len())
        .map(|class| {
            let mut row = vec![Cell::text(name_of(&report.names, class))];
            for split in &report.splits {
                let of = |counts: &[usize]| counts.get(class).copied().unwrap_or(0);
                let boxes = of(&split.boxes);
                row.push(Cell::Html(bar(boxes as f64 / most as f64, &boxes.to_string())));
                row.push(Cell::number(of(&split.images_with)));
            }
            row
        })
        .collect();
    let mut headings = vec!["Class".to_owned()];
    for split in &report.splits {
        headings.push(format!("Boxes in {}", split.split));
        headings.push(format!("#Images in {}", split.split));
    }
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let table = table("Classes", &headings, &rows);
    if rows.len() > 20 { details(&format!("All {} classes", rows.len()), &table) } else { table }
}

/// Classes without boxes, which cannot be learned or measured.
fn absent(report: &RunReport) -> String {
    let mut html = String::new();
    for split in &report.splits {
        let absent: Vec<&str> = report
            .names
            .iter()
            .zip(&split.boxes)
            .filter(|(_, count)| **count == 0)
            .map(|(name, _)| name.as_str())
            .collect();
        if !absent.is_empty() {
            let names = esc(absent.join(", "));
            html.push_str(&format!("<p class=\"warning\">No boxes in {}: {names}.</p>\n", esc(&split.split)));
        }
    }
    html
}

/// What the scan said about single files.
fn messages(split: &SplitFacts) -> String {
    let mut list: String =
        split.messages.iter().map(|message| format!("<li>{}</li>", esc(message))).collect();
    let more = split.all_messages.saturating_sub(split.messages.len());
    if more > 0 {
        list.push_str(&format!("<li>and {more} more, which the log of rank 0 has</li>"));
    }
    let summary = format!("{} in {}", yolo_base::format::count(split.all_messages, "problem"), split.split);
    format!("<details open><summary>{}</summary><ul>{list}</ul></details>\n", esc(summary))
}

//! The catalogue for people: `--list` names every finding, `--explain` tells all about one. Both
//! come from the rows that are compiled in, so that they need neither a network nor a sick machine.

use std::fmt::Write as _;

use yolo_checks::catalogue::EXCUSED;
use yolo_checks::{Area, Entry, checks, entries, entry};

use super::select::unknown;
use crate::error::CommandError;
use crate::printer::{COLUMNS, cut, wrap};

/// Every id with its title, by area.
pub(super) fn list() -> String {
    let width = entries().map(|entry| entry.id.len()).max().unwrap_or(0);
    let mut text = String::new();
    for area in Area::ALL {
        let mut rows = entries().filter(|entry| entry.area == area).peekable();
        if rows.peek().is_none() {
            continue;
        }
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{gap}{} ({})", area.title(), area.name());
        for entry in rows {
            let _ = writeln!(text, "  {:<width$}  {}", entry.id, cut(entry.title, COLUMNS - width - 4));
        }
    }
    let _ = write!(
        text,
        "\n{} findings of {} checks; `yolo doctor --explain ID` tells about one",
        entries().count(),
        checks::all().count()
    );
    text
}

/// All about a finding, or about a known failure by its own name.
pub(super) fn explain(name: &str) -> Result<String, CommandError> {
    if let Some(entry) = entry(name) {
        return Ok(page(entry));
    }
    if let Some(excused) = EXCUSED.iter().find(|excused| excused.failure == name) {
        let reason = format!("the quick checks do not look for it: {}", excused.reason);
        return Ok(format!("{name}\n\n{}", wrap("", &reason)));
    }
    let detecting: Vec<&Entry> = entries().filter(|entry| entry.detects.contains(&name)).collect();
    if detecting.is_empty() {
        return Err(unknown(name));
    }
    Ok(detecting.into_iter().map(page).collect::<Vec<_>>().join("\n\n"))
}

fn page(entry: &Entry) -> String {
    let mut text = format!("{}\n{}\n\n", entry.title, "=".repeat(entry.title.chars().count().min(COLUMNS)));
    let mut row = |name: &str, words: &str| {
        let _ = writeln!(text, "{}", wrap(&format!("{name:<9}"), words));
    };
    row("id", entry.id);
    row("area", entry.area.title());
    row("usually", status_words(entry));
    if let Some(check) = checks::all().find(|check| check.reports.contains(&entry.id)) {
        row("question", check.question);
        row(
            "asked",
            if check.preflight {
                "by `yolo doctor`, and before each `yolo train`"
            } else {
                "by `yolo doctor`"
            },
        );
    }
    row("why", entry.cause);
    row("do", entry.remedy.unwrap_or("nothing"));
    if let Some(fix) = entry.fix {
        row("--fix", fix.does);
        row("undo", fix.undo);
    }
    if !entry.detects.is_empty() {
        row("known as", &entry.detects.join(", "));
    }
    row("more", &entry.link());
    text.trim_end().to_owned()
}

/// The usual status as words.
pub(super) fn status_words(entry: &Entry) -> &'static str {
    use yolo_checks::Status;
    match entry.status {
        Status::Ok => "no problem: it says that all is well",
        Status::Info => "worth knowing",
        Status::Skipped => "not known",
        Status::Warning => "a warning: it slows a run, or may stop it",
        Status::Error => "an error: it stops a run",
    }
}

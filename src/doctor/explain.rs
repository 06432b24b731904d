//! The catalogue as text: `--list` names every finding, `--explain` describes one. Both use the
//! compiled-in entries, so that they need neither a network nor a machine with the problem.

use std::fmt::Write as _;

use yolo_base::format;
use yolo_checks::catalogue::UNDETECTED;
use yolo_checks::{Area, Entry, checks, entries, entry};

use super::select::unknown;
use crate::error::CommandError;
use crate::printer::{COLUMNS, wrap};

/// Every id with its title, by area. On a terminal, long titles are wrapped; elsewhere each id has
/// one line, for other programs.
pub(super) fn list(is_terminal: bool) -> String {
    let mut text =
        Area::ALL.into_iter().filter_map(|area| of_area(area, is_terminal)).collect::<Vec<_>>().join("\n");
    let _ = write!(
        text,
        "\n{} findings from {} checks; `yolo doctor --explain ID` describes one",
        entries().count(),
        checks::all().count()
    );
    text
}

/// The ids of one area with their titles; `None` if it has none.
fn of_area(area: Area, is_terminal: bool) -> Option<String> {
    let width = entries().map(|entry| entry.id.len()).max().unwrap_or(0);
    let rows: Vec<&Entry> = entries().filter(|entry| entry.area == area).collect();
    if rows.is_empty() {
        return None;
    }
    let mut text = format!("{} ({})\n", area.title(), area.name());
    for entry in rows {
        let first = format!("  {:<width$}  ", entry.id);
        let line = if is_terminal { wrap(&first, entry.title) } else { first + entry.title };
        let _ = writeln!(text, "{line}");
    }
    Some(text)
}

/// Describes a finding or a known failure, or lists the findings of an area.
pub(super) fn explain(name: &str, is_terminal: bool) -> Result<String, CommandError> {
    if let Some(entry) = entry(name) {
        return Ok(page(entry));
    }
    if let Some(failure) = UNDETECTED.iter().find(|failure| failure.id == name) {
        let reason = format!("no quick check looks for it: {}", failure.reason);
        return Ok(format!("{name}\n\n{}", wrap("", &reason)));
    }
    if let Some(area) = Area::ALL.into_iter().find(|area| area.name() == name)
        && let Some(rows) = of_area(area, is_terminal)
    {
        return Ok(format!(
            "{rows}\n`{name}` is an area; `yolo doctor --explain ID` describes one of its findings"
        ));
    }
    let detecting: Vec<&Entry> = entries().filter(|entry| entry.detects.contains(&name)).collect();
    if detecting.is_empty() {
        return Err(unknown(name));
    }
    Ok(detecting.into_iter().map(page).collect::<Vec<_>>().join("\n\n"))
}

fn page(entry: &Entry) -> String {
    let mut text = format!("{}\n{}\n\n", entry.title, "=".repeat(entry.title.chars().count().min(COLUMNS)));
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "{}", wrap(&format!("{name:<9}"), value));
    };
    row("id", entry.id);
    row("area", entry.area.title());
    row("usually", status_words(entry));
    if let Some(check) = checks::all().find(|check| check.reports.contains(&entry.id)) {
        row("question", check.question);
        row(
            "checked",
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
    if let Some(note) = planned(entry) {
        row("note", &note);
    }
    row("more", &entry.link());
    text.trim_end().to_owned()
}

/// Which options of its text `yolo train` does not accept yet.
pub(super) fn planned(entry: &Entry) -> Option<String> {
    let options: Vec<String> = entry.planned_options().map(|option| format!("`{option}`")).collect();
    let (are, them) = if options.len() == 1 { ("is", "it") } else { ("are", "them") };
    let options = (!options.is_empty()).then(|| format::list(&options))?;
    Some(format!(
        "{options} {are} planned: today `yolo doctor` accepts {them} after `--`, but `yolo train` does not"
    ))
}

/// The usual status as a phrase.
pub(super) fn status_words(entry: &Entry) -> &'static str {
    use yolo_checks::Status;
    match entry.status {
        Status::Ok => "ok: it confirms that this part works",
        Status::Info => "info: worth knowing",
        Status::Skipped => "not known",
        Status::Warning => "a warning: it slows a run down or may stop it",
        Status::Error => "an error: it stops a run",
    }
}

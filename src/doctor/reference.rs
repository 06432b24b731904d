//! The reference page: the catalogue as Markdown, and the known failures that no check detects,
//! with the reason. `yolo doctor --reference` prints it, and a test compares the file in the
//! repository with it.

use std::fmt::Write as _;

use yolo_checks::catalogue::UNDETECTED;
use yolo_checks::{Area, Entry, checks, entries};

use super::explain::{planned, status_words};

/// The whole page.
pub(super) fn page() -> String {
    let mut text = format!(
        "# What `yolo doctor` finds\n\n\
         Generated from `checks/src/catalogue/` by a test; do not edit. {} findings from {} checks.\n\n\
         Exit status: 0, no errors; 1, at least one error; 2, invalid usage: an invalid argument, an unknown\n\
         id, or a file that is not a recording.\n",
        entries().count(),
        checks::all().count()
    );
    for area in Area::ALL {
        let rows: Vec<&Entry> = entries().filter(|entry| entry.area == area).collect();
        if rows.is_empty() {
            continue;
        }
        let _ = write!(text, "\n## {}\n", area.title());
        rows.into_iter().for_each(|entry| section(&mut text, entry));
    }
    text.push_str(
        "\n## Known failures that cannot be detected before a run\n\n\
         | failure | why no check looks for it |\n|---|---|\n",
    );
    for failure in UNDETECTED {
        let _ = writeln!(text, "| `{}` | {} |", failure.id, failure.reason);
    }
    text
}

fn section(text: &mut String, entry: &Entry) {
    let _ = write!(text, "\n### {}\n**{}.** Usually {}.\n", entry.id, entry.title, status_words(entry));
    let mut row = |name: &str, value: &str| {
        let _ = write!(text, "\n- **{name}:** {value}");
    };
    row("Why", entry.cause);
    if let Some(remedy) = entry.remedy {
        row("What to do", remedy);
    }
    if let Some(fix) = entry.fix {
        row("`--fix`", fix.does);
        row("Undo", fix.undo);
    }
    if let Some(check) = checks::all().find(|check| check.reports.contains(&entry.id)) {
        let when = if check.preflight { " (also before each `yolo train`)" } else { "" };
        row("Check", &format!("{}{when}", check.question));
    }
    if let Some(note) = planned(entry) {
        row("Note", &note);
    }
    text.push('\n');
}

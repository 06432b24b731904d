//! The reference page: the catalogue as Markdown, with the known failures that nothing detects
//! before a run and why. `yolo doctor --reference` prints it, and a test holds the file in the
//! repository against it.

use std::fmt::Write as _;

use yolo_checks::catalogue::EXCUSED;
use yolo_checks::{Area, Entry, checks, entries};

use super::explain::status_words;

/// The whole page.
pub(super) fn page() -> String {
    let mut text = format!(
        "# What `yolo doctor` finds\n\n\
         Made from the catalogue by `yolo doctor --reference`; do not edit. {} findings of {} checks.\n\n\
         Exit codes: 0 no error was found, 1 an error was found, 2 misuse: wrong words, an unknown id, a file\n\
         that is no recording.\n",
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
        "\n## Known failures that nothing shows before a run\n\n\
         | failure | why no check looks for it |\n|---|---|\n",
    );
    for excused in EXCUSED {
        let _ = writeln!(text, "| `{}` | {} |", excused.failure, excused.reason);
    }
    text
}

fn section(text: &mut String, entry: &Entry) {
    let _ = write!(text, "\n### {}\n**{}.** Usually {}.\n", entry.id, entry.title, status_words(entry));
    let mut row = |name: &str, words: &str| {
        let _ = write!(text, "\n- **{name}:** {words}");
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
        let when = if check.preflight { " (before each `yolo train` too)" } else { "" };
        row("Asked", &format!("{}{when}", check.question));
    }
    if !entry.detects.is_empty() {
        row("Known failures", &entry.detects.join(", "));
    }
    text.push('\n');
}

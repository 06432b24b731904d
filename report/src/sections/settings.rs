//! The settings of a run: first those that differ from the defaults, then all.

use crate::html::{Cell, details, table};
use crate::run_files::RunFiles;
use crate::settings::Setting;

/// The section about the settings.
pub(crate) fn section(run: &RunFiles) -> String {
    let all: Vec<&Setting> = run.options.iter().chain(&run.hyp).collect();
    if all.is_empty() {
        return String::new();
    }
    let row = |setting: &&Setting| {
        let default = setting.default.as_deref().unwrap_or("–");
        let value = if setting.value.is_empty() { "–" } else { &setting.value };
        vec![Cell::text(&setting.name), Cell::text(value), Cell::text(default)]
    };
    let headings = ["Setting", "Value", "Default"];
    let changed: Vec<_> = all.iter().filter(|setting| setting.changed).map(row).collect();
    let mut html = match changed.is_empty() {
        true => "<p>All settings have their defaults.</p>\n".to_owned(),
        false => table("Changed from the defaults", &headings, &changed),
    };
    for (summary, settings) in [("All options", &run.options), ("All hyperparameters", &run.hyp)] {
        if !settings.is_empty() {
            let rows: Vec<_> = settings.iter().collect::<Vec<_>>().iter().map(row).collect();
            html.push_str(&details(summary, &table(summary, &headings, &rows)));
        }
    }
    super::section("settings", "Settings", &html)
}

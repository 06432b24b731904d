//! The result of a run in a few numbers and sentences, and the commands that repeat it.

use yolo_base::format::{count, duration};
use yolo_plan::report::{End, RunFacts};
use yolo_plan::results::{Row, best, fitness};

use crate::html::esc;
use crate::run_files::RunFiles;

/// The section at the top.
pub(crate) fn section(run: &RunFiles) -> String {
    let mut tiles = Vec::new();
    let facts = run.report.as_ref().and_then(|report| report.run.as_ref());
    let validated = run.report.iter().flat_map(|report| &report.validations).next();
    if let Some(all) = validated.and_then(|validation| validation.table.rows.first()) {
        let metrics = all.metrics;
        for (name, value) in [
            ("mAP50-95", metrics.map50_95),
            ("mAP50", metrics.map50),
            ("Precision", metrics.precision),
            ("Recall", metrics.recall),
        ] {
            tiles.push((name, format!("{value:.3}")));
        }
    } else if let Some(row) = best(&run.results) {
        tiles.push(("mAP50-95", format!("{:.3}", row[7])));
        tiles.push(("mAP50", format!("{:.3}", row[6])));
    }
    if !run.results.is_empty() {
        tiles.push(("Epochs", run.results.len().to_string()));
    }
    if let Some(facts) = facts {
        let all_starts = run.report.as_ref().map_or(0.0, |report| report.spent.seconds);
        tiles.push(("Time", duration(all_starts.max(facts.seconds))));
    }
    let mut html = "<dl class=\"tiles\">".to_owned();
    for (name, value) in tiles {
        html.push_str(&format!("<div><dt>{name}</dt><dd>{}</dd></div>", esc(value)));
    }
    html.push_str("</dl>\n");
    for sentence in sentences(run, facts) {
        html.push_str(&format!("<p>{}</p>\n", esc(sentence)));
    }
    super::section("summary", "Summary", &html)
}

/// How the run ended, and what its numbers are about.
fn sentences(run: &RunFiles, facts: Option<&RunFacts>) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(facts) = facts {
        let how = match facts.end {
            End::Finished => "The run is complete.".to_owned(),
            End::StoppedEarly => {
                let patience = run.option("patience").unwrap_or_default();
                format!("Training stopped early: nothing had improved for {patience} epochs.")
            }
            End::Interrupted => "The run was interrupted. This report shows what was there.".to_owned(),
            End::Failed => {
                let why = facts.failure.as_deref().unwrap_or("a rank ended unexpectedly");
                format!("The run failed: {why}.")
            }
        };
        sentences.push(how);
    }
    let planned = run.option("epochs").and_then(|epochs| epochs.parse::<usize>().ok());
    if let Some(row) = best(&run.results) {
        let of = planned.filter(|planned| *planned != run.results.len());
        let of = of.map_or_else(String::new, |planned| format!(" of {planned}"));
        sentences.push(format!(
            "{}{of}; the best is {}.",
            count(run.results.len(), "epoch"),
            best_epoch(row)
        ));
    }
    for validation in run.report.iter().flat_map(|report| &report.validations) {
        let images = count(validation.table.images, "image");
        sentences.push(format!("The metrics are those of {} on {images}.", validation.title));
    }
    let report = run.report.as_ref();
    if let Some(model) = report.and_then(|report| report.model.as_ref()) {
        sentences.push(format!("Model: {model}."));
    }
    sentences
}

/// The best epoch in words.
pub(crate) fn best_epoch(row: &Row) -> String {
    format!("epoch {} with fitness {:.4} (0.1 · mAP50 + 0.9 · mAP50-95)", row[0] + 1.0, fitness(row))
}

/// The section with the commands to repeat the run and to go on.
pub(crate) fn repeat(run: &RunFiles) -> String {
    let facts = run.report.as_ref().and_then(|report| report.run.as_ref());
    let Some(facts) = facts else { return String::new() };
    let text = |(what, command): &(String, String)| {
        format!("<p>{}</p>\n<pre>{}</pre>\n", esc(what), breakable(command))
    };
    super::section("repeat", "Repeat this run", &facts.commands.iter().map(text).collect::<String>())
}

/// A command whose lines do not break within an option.
fn breakable(command: &str) -> String {
    let word = |word: &str| match word.starts_with('-') {
        true => format!("<span class=\"nb\">{}</span>", esc(word)),
        false => esc(word),
    };
    command.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

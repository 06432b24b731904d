//! Renders a report as one page of Markdown.

use std::fmt::Write as _;

use yolo_base::format::{duration, memory};

use super::figures::{speeds, tables};
use super::text::cell;
use super::types::{LIMIT, Outcome, Report};
use crate::stage::Stage;

/// The page: date, machine, stages, figures, and what failed.
pub fn page(report: &Report) -> String {
    let title = if report.rehearsal { "Rehearsal of the GPU kit" } else { "Report of the GPU kit" };
    format!("# {title}\n\n{}", about(report))
}

/// The content of the page, without its title.
pub fn about(report: &Report) -> String {
    let mut text = summary(report);
    text.push_str(&machine(report));
    text.push_str(&stages(report));
    text.push_str(&how_fast(report));
    text.push_str(&failures(report));
    text.push_str(&unfinished(report));
    for stage in &report.stages {
        text.push_str(&tables(stage));
    }
    text.push_str(&checks(report));
    text
}

/// One sentence that says what the report says.
fn summary(report: &Report) -> String {
    let named = |wanted: fn(Outcome) -> bool| -> Vec<&str> {
        let found = report.stages.iter().filter(|stage| wanted(stage.outcome));
        found.map(|stage| stage.stage.name()).collect()
    };
    let failed = named(Outcome::is_failure);
    let passed = named(|outcome| outcome == Outcome::Passed);
    let missing = [Outcome::Unfinished, Outcome::NotBuilt, Outcome::Skipped];
    let mut sentences = Vec::new();
    if !failed.is_empty() {
        sentences.push(format!("**Failed: {}.**", failed.join(", ")));
    }
    if !passed.is_empty() {
        sentences.push(format!("Passed: {}.", passed.join(", ")));
    }
    for outcome in missing {
        let found = report.stages.iter().filter(|stage| stage.outcome == outcome);
        let names: Vec<&str> = found.map(|stage| stage.stage.name()).collect();
        if !names.is_empty() {
            sentences.push(format!("{}: {}.", capitalized(outcome.text()), names.join(", ")));
        }
    }
    if report.rehearsal {
        sentences
            .push("A rehearsal runs on the CPU with tiny sizes and proves nothing about a GPU.".to_owned());
    }
    format!("{}\n\n", sentences.join(" "))
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn machine(report: &Report) -> String {
    let machine = &report.machine;
    let mut text = String::from("| | |\n|---|---|\n");
    let mut row = |what: &str, value: String| {
        let _ = writeln!(text, "| {what} | {value} |");
    };
    row("date", report.date.clone());
    row("yolo", format!("{}, commit {}, built {}", report.kit.program, report.kit.commit, report.kit.built));
    for gpu in &machine.gpus {
        let about = format!("{}, {}, compute capability {}", gpu.name, memory(gpu.memory), gpu.capability);
        row(&format!("GPU {}", gpu.index), about);
    }
    if let Some(driver) = &machine.driver {
        row("driver", driver.clone());
    }
    row("libtorch", machine.libtorch.clone());
    row("CPU", format!("{}, {} cores", machine.cpu, machine.cores));
    row("memory", memory(machine.memory));
    row("system", format!("{}, kernel {}", machine.system, machine.kernel));
    text.push('\n');
    text
}

fn stages(report: &Report) -> String {
    let proves = if report.rehearsal { "would prove on a GPU" } else { "proves" };
    let mut text = format!("| stage | result | time | {proves} |\n|---|---|---|---|\n");
    for stage in &report.stages {
        let result = match (&stage.why, stage.outcome) {
            (Some(why), Outcome::Skipped | Outcome::NotBuilt | Outcome::Unfinished) => {
                format!("{}: {why}", stage.outcome.text())
            }
            _ => stage.outcome.text().to_owned(),
        };
        let time = duration(stage.seconds);
        let _ = writeln!(
            text,
            "| {} | {} | {time} | {} |",
            stage.stage.name(),
            cell(&result),
            stage.stage.proves()
        );
    }
    text.push('\n');
    text
}

/// The speeds, and what limits them: what most readers look for.
fn how_fast(report: &Report) -> String {
    let Some(speed) = report.stages.iter().find(|stage| stage.stage == Stage::Speed) else {
        return String::new();
    };
    let table = speeds(speed);
    if table.is_empty() {
        return table;
    }
    let mut text = format!("## How fast\n\n{table}");
    for check in &speed.checks {
        if let Some(of) = check.what.strip_suffix(LIMIT) {
            let _ = writeln!(text, "- {}: {} limits training", cell(of), cell(&check.detail));
        }
    }
    text.push('\n');
    text
}

fn checks(report: &Report) -> String {
    let mut text = String::new();
    for stage in report.stages.iter().filter(|stage| !stage.checks.is_empty()) {
        let _ = write!(
            text,
            "## Checks of {}\n\n| check | result | found |\n|---|---|---|\n",
            stage.stage.name()
        );
        for check in &stage.checks {
            let _ = writeln!(
                text,
                "| {} | {} | {} |",
                cell(&check.what),
                check.outcome.text(),
                cell(&check.detail)
            );
        }
        text.push('\n');
    }
    text
}

/// What was to be checked, and for which time did not suffice.
fn unfinished(report: &Report) -> String {
    let mut text = String::new();
    for stage in &report.stages {
        let open = stage.checks.iter().filter(|check| check.outcome == Outcome::Unfinished);
        let open: Vec<String> = open.map(|check| format!("- {}: {}\n", check.what, check.detail)).collect();
        if !open.is_empty() {
            let _ = writeln!(text, "## What {} has not finished\n\n{}", stage.stage.name(), open.concat());
        }
    }
    text
}

fn failures(report: &Report) -> String {
    let mut text = String::new();
    for stage in report.stages.iter().filter(|stage| stage.outcome.is_failure()) {
        let _ = write!(text, "## Why {} failed\n\n", stage.stage.name());
        if let Some(why) = &stage.why {
            let _ = writeln!(text, "{why}\n");
        }
        let failed: Vec<_> = stage.checks.iter().filter(|check| check.outcome.is_failure()).collect();
        for check in &failed {
            let _ = writeln!(text, "- {}: {}", check.what, check.detail);
        }
        if !failed.is_empty() {
            text.push('\n');
        }
        if !stage.lines.is_empty() {
            let _ = writeln!(text, "```text\n{}\n```\n", stage.lines.join("\n").replace("```", "'''"));
        }
    }
    text
}

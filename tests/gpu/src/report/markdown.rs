//! Renders a report as one page of Markdown.

use std::fmt::Write as _;

use yolo_base::format::{duration, memory};

use super::figures::tables;
use super::text::cell;
use super::types::{Outcome, Report};

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
    text.push_str(&failures(report));
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
    let missing = named(|outcome| matches!(outcome, Outcome::NotBuilt | Outcome::Skipped));
    let mut sentences = Vec::new();
    if !failed.is_empty() {
        sentences.push(format!("**Failed: {}.**", failed.join(", ")));
    }
    if !passed.is_empty() {
        sentences.push(format!("Passed: {}.", passed.join(", ")));
    }
    if !missing.is_empty() {
        sentences.push(format!("Not run or not built yet: {}.", missing.join(", ")));
    }
    if report.rehearsal {
        sentences
            .push("A rehearsal runs on the CPU with tiny sizes and proves nothing about a GPU.".to_owned());
    }
    format!("{}\n\n", sentences.join(" "))
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
    let mut text = String::from("| stage | result | time | proves |\n|---|---|---|---|\n");
    for stage in &report.stages {
        let result = match (&stage.why, stage.outcome) {
            (Some(why), Outcome::Skipped | Outcome::NotBuilt) => format!("{}: {why}", stage.outcome.text()),
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

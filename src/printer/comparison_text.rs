//! A comparison of machines as text: first the differences that matter, with the reason and what to do,
//! then the problems of only some machines, then the other differences in one line each, and last
//! what is equal. The text is complete without colors.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use yolo_base::format::{count, list};
use yolo_checks::Status;
use yolo_checks::compare::{Comparison, Difference, FindingDifference, State};

use super::wrap::wrap;

/// The width of the statuses, as in the report.
const WORD: usize = 8;
/// The columns before what is said about a difference.
const INDENT: usize = 2 + WORD + 1;
/// The width of the names of facts where each has one line.
const NAME: usize = 26;

/// Stands for a value that is unknown or does not apply.
const NO_VALUE: &str = "–";

/// The comparison as text; `is_verbose` adds the values that are equal, and why facts are unknown.
pub(crate) fn comparison_text(comparison: &Comparison, is_verbose: bool) -> String {
    let mut text = String::new();
    machines(&mut text, comparison);
    let (matter, rest): (Vec<&Difference>, Vec<&Difference>) =
        comparison.differences.iter().partition(|difference| difference.status >= Status::Warning);
    if !matter.is_empty() {
        heading(&mut text, "Differences that matter when all machines train together");
        matter.iter().for_each(|difference| show(&mut text, comparison, difference));
    }
    if !comparison.findings.is_empty() {
        heading(&mut text, "Problems that only some machines have");
        comparison.findings.iter().for_each(|finding| problem(&mut text, comparison, finding));
    }
    if !rest.is_empty() {
        heading(&mut text, "Differences that do not matter");
        rest.iter().for_each(|difference| line(&mut text, difference));
    }
    text.push('\n');
    if is_verbose {
        details(&mut text, comparison);
    } else {
        ending(&mut text, comparison);
    }
    summary(&mut text, comparison);
    text.trim_end().to_owned()
}

fn heading(text: &mut String, title: &str) {
    let bold = Style::new().bold();
    let _ = writeln!(text, "\n{bold}{title}{bold:#}");
}

fn machines(text: &mut String, comparison: &Comparison) {
    let bold = Style::new().bold();
    let _ = writeln!(text, "{bold}{}{bold:#}", count(comparison.machines.len(), "machine"));
    let width = name_width(comparison);
    for machine in &comparison.machines {
        let about =
            if machine.about.is_empty() { "nothing is known".to_owned() } else { machine.about.join(", ") };
        put(text, &wrap(&format!("  {:width$}  ", machine.name), &about));
    }
}

fn name_width(comparison: &Comparison) -> usize {
    comparison.machines.iter().map(|machine| machine.name.chars().count()).max().unwrap_or(0)
}

fn put(text: &mut String, lines: &str) {
    for line in lines.lines() {
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

/// A difference that matters.
fn show(text: &mut String, comparison: &Comparison, difference: &Difference) {
    marked(text, difference.status, difference.what);
    let indent = " ".repeat(INDENT);
    let width = name_width(comparison);
    for (machine, value) in comparison.machines.iter().zip(&difference.values) {
        let value = value.as_deref().unwrap_or(NO_VALUE);
        put(text, &wrap(&format!("{indent}{:width$}  ", machine.name), value));
    }
    put(text, &wrap(&format!("{indent}why:  "), &difference.why));
    if let Some(remedy) = &difference.remedy {
        put(text, &wrap(&format!("{indent}do:   "), remedy));
    }
}

/// A warning or an error that not all machines have.
fn problem(text: &mut String, comparison: &Comparison, finding: &FindingDifference) {
    let names = |state: State| -> Vec<&str> {
        let all = comparison.machines.iter().zip(&finding.machines);
        all.filter(|(_, here)| here.state == state).map(|(machine, _)| machine.name.as_str()).collect()
    };
    let mut is_first = true;
    for (machine, here) in comparison.machines.iter().zip(&finding.machines) {
        let Some(title) = &here.title else { continue };
        let seen = format!("{}: {title}", machine.name);
        if is_first {
            marked(text, finding.status, &seen);
        } else {
            put(text, &wrap(&" ".repeat(INDENT), &seen));
        }
        is_first = false;
    }
    let unknown = names(State::Unknown);
    if !unknown.is_empty() {
        let said = format!("not known for {}, whose recording lacks a fact", list(&unknown));
        put(text, &wrap(&" ".repeat(INDENT), &said));
    }
    let dim = Style::new().dimmed();
    let _ = writeln!(text, "{}{dim}[{}]{dim:#}", " ".repeat(INDENT), finding.id);
}

/// The first line of something that matters, with its status.
fn marked(text: &mut String, status: Status, what: &str) {
    let (word, style) = if status == Status::Error {
        ("error", AnsiColor::Red.on_default().bold())
    } else {
        ("warning", AnsiColor::Yellow.on_default().bold())
    };
    let block = wrap(&format!("  {word:WORD$} "), what);
    // Color is added after wrapping, so that its codes do not count as letters.
    let _ = writeln!(text, "  {style}{word}{style:#}{}", &block[2 + word.len()..]);
}

/// A difference that does not matter, on one line if it fits.
fn line(text: &mut String, difference: &Difference) {
    let values: Vec<&str> =
        difference.values.iter().map(|value| value.as_deref().unwrap_or(NO_VALUE)).collect();
    put(text, &wrap(&format!("  {:NAME$}  ", difference.what), &values.join(" | ")));
}

/// What is equal and what is unknown, by name.
fn ending(text: &mut String, comparison: &Comparison) {
    let equal: Vec<&str> = comparison.equal.iter().map(|equal| equal.what).collect();
    if !equal.is_empty() {
        put(text, &wrap("equal:      ", &equal.join(", ")));
    }
    let unknown: Vec<&str> = comparison.unknown.iter().map(|unread| unread.what).collect();
    if !unknown.is_empty() {
        put(text, &wrap("unknown:    ", &format!("{} (-v shows why)", unknown.join(", "))));
    }
}

/// What is equal with its value, and what is unknown with the reasons.
fn details(text: &mut String, comparison: &Comparison) {
    if !comparison.equal.is_empty() {
        text.pop();
        heading(text, "Equal");
        for equal in &comparison.equal {
            put(text, &wrap(&format!("  {:NAME$}  ", equal.what), &equal.value));
        }
        text.push('\n');
    }
    if comparison.unknown.is_empty() {
        return;
    }
    text.pop();
    heading(text, "Unknown");
    for unread in &comparison.unknown {
        for (machine, reason) in comparison.machines.iter().zip(&unread.reasons) {
            if let Some(reason) = reason {
                put(
                    text,
                    &wrap(&format!("  {:NAME$}  ", unread.what), &format!("{}: {reason}", machine.name)),
                );
            }
        }
    }
    text.push('\n');
}

fn summary(text: &mut String, comparison: &Comparison) {
    let (errors, warnings) = (comparison.count(Status::Error), comparison.count(Status::Warning));
    if !comparison.shared_findings.is_empty() {
        let shared = format!("{}, on all machines", comparison.shared_findings.join(", "));
        put(text, &wrap("problems:   ", &shared));
    }
    let found = match (errors, warnings, comparison.differences.len()) {
        (0, 0, 0) => "no differences".to_owned(),
        (0, 0, _) => "no difference matters".to_owned(),
        _ => format!("{}, {}", count(errors, "error"), count(warnings, "warning")),
    };
    let _ = writeln!(text, "{found}");
    if !comparison.findings.is_empty() || !comparison.shared_findings.is_empty() {
        let hint = "`yolo doctor --replay FILE` shows the cause and the remedy of a problem";
        put(text, &wrap("", hint));
    }
}

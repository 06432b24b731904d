//! Findings as text. An area without problems is one line; a problem has its cause and its remedy,
//! with the commands for this host. The text is complete without colors. `-v` shows everything:
//! passed and skipped checks, evidence, the GPUs, the time of each check and every fact.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use yolo_base::format::{count, duration};
use yolo_checks::{Area, Finding, Status};

use super::report::{Report, is_fixable};
use super::verbose;
use crate::printer::{COLUMNS, cut, wrap};

/// The column where an area's state starts; the longest title has 30 letters.
const TITLE: usize = 32;
/// The width of the widest status.
const WORD: usize = 8;

/// The report as text.
pub(super) fn render(report: &Report<'_>, is_verbose: bool) -> String {
    let findings = report.findings();
    let mut text = String::new();
    for area in Area::ALL {
        let of_area: Vec<&Finding> =
            findings.iter().copied().filter(|finding| finding.area == area).collect();
        if !of_area.is_empty() {
            show_area(&mut text, area, &of_area, is_verbose);
        }
    }
    if is_verbose {
        verbose::append(&mut text, report);
    }
    let _ = write!(text, "\n{}", summary(report, is_verbose));
    text
}

fn show_area(text: &mut String, area: Area, findings: &[&Finding], is_verbose: bool) {
    let title = area.title();
    let padding = " ".repeat(TITLE - title.chars().count());
    let bold = Style::new().bold();
    let worst = findings.iter().map(|finding| finding.status).max().unwrap_or(Status::Ok);
    let with = |status| findings.iter().filter(|finding| finding.status == status).count();
    let (errors, warnings) = (with(Status::Error), with(Status::Warning));
    let state = match worst {
        Status::Error | Status::Warning => {
            let (_, style) = mark(worst);
            let mut counts = Vec::new();
            counts.extend((errors > 0).then(|| count(errors, "error")));
            counts.extend((warnings > 0).then(|| count(warnings, "warning")));
            format!("{style}{}{style:#}", counts.join(", "))
        }
        _ if findings.iter().all(|finding| finding.status == Status::Skipped) => {
            let (_, style) = mark(Status::Skipped);
            format!("{style}unknown{style:#}")
        }
        _ => {
            let (word, style) = mark(Status::Ok);
            let seen = if is_verbose { String::new() } else { passed(findings) };
            format!("{style}{word}{style:#}  {seen}").trim_end().to_owned()
        }
    };
    let _ = writeln!(text, "{bold}{title}{bold:#}{padding}{state}");
    for finding in findings {
        if is_verbose || finding.status == Status::Info || finding.status >= Status::Warning {
            show(text, finding, is_verbose);
        }
    }
}

/// The titles of passed checks, as many as fit after the area's name.
fn passed(findings: &[&Finding]) -> String {
    const ROOM: usize = COLUMNS - TITLE - 4;
    let mut passed = findings.iter().filter(|finding| finding.status == Status::Ok);
    let mut seen = cut(passed.next().map_or("", |finding| &finding.title), ROOM);
    for finding in passed {
        if seen.chars().count() + 2 + finding.title.chars().count() > ROOM {
            break;
        }
        let _ = write!(seen, "; {}", finding.title);
    }
    seen
}

/// Shows one finding. The message of a run that preflight stops has the same text.
pub(super) fn show(text: &mut String, finding: &Finding, is_verbose: bool) {
    let (word, style) = mark(finding.status);
    let first = format!("  {word:<WORD$} ");
    let indent = " ".repeat(first.len());
    // The status in front of it says so already.
    let title = finding.title.strip_prefix("skipped, ").unwrap_or(&finding.title);
    let block = wrap(&first, title);
    // Color is added after wrapping, so that its codes do not count as letters.
    let _ = writeln!(text, "  {style}{word}{style:#}{}", &block[2 + word.len()..]);
    if is_verbose {
        finding.evidence.iter().for_each(|seen| {
            let _ = writeln!(text, "{}", wrap(&format!("{indent}seen: "), seen));
        });
    }
    if finding.status >= Status::Warning
        && let Some(cause) = &finding.cause
    {
        let _ = writeln!(text, "{}", wrap(&format!("{indent}why:  "), cause));
    }
    if let Some(remedy) = &finding.remedy {
        let _ = writeln!(text, "{}", wrap(&format!("{indent}do:   "), &remedy.text));
        let bold = Style::new().bold();
        for command in remedy.commands.iter().flat_map(|command| command.lines()) {
            // Not wrapped: commands are copied.
            let _ = writeln!(text, "{indent}        {bold}{command}{bold:#}");
        }
        if is_fixable(finding) {
            let _ = writeln!(text, "{indent}      `yolo doctor --fix` can do this");
        }
    }
    if is_verbose || finding.status >= Status::Warning {
        let dim = Style::new().dimmed();
        let _ = writeln!(text, "{indent}{dim}[{}]{dim:#}", finding.id);
    }
}

fn summary(report: &Report<'_>, is_verbose: bool) -> String {
    let (errors, warnings) = (report.count(Status::Error), report.count(Status::Warning));
    let found = match (errors, warnings) {
        (0, 0) => "no errors, no warnings".to_owned(),
        _ => format!("{}, {}", count(errors, "error"), count(warnings, "warning")),
    };
    // No findings are no good news if nothing could be checked.
    let all = report.findings().len();
    let found = if all > 0 && report.count(Status::Skipped) == all {
        "no facts were available; nothing could be checked".to_owned()
    } else {
        found
    };
    let took = duration(report.took.as_secs_f64());
    let mut text = format!("{found}; {} in {took}", count(report.verdicts.len(), "check"));
    let skipped = report.count(Status::Skipped);
    if skipped > 0 && !is_verbose {
        let _ = write!(text, "; {} skipped (-v shows why)", count(skipped, "finding"));
    }
    let mut lines = vec![wrap("", &text)];
    let fixable = report.fixable();
    if fixable > 0 {
        lines.push(wrap("", &format!("`yolo doctor --fix` can fix {fixable} of them; it asks first")));
    }
    if errors + warnings > 0 {
        lines.push(wrap("", "`yolo doctor --explain ID` explains a finding; its ID is in [brackets]"));
    }
    lines.join("\n")
}

fn mark(status: Status) -> (&'static str, Style) {
    match status {
        Status::Ok => ("ok", AnsiColor::Green.on_default()),
        Status::Info => ("info", AnsiColor::Cyan.on_default()),
        Status::Skipped => ("skipped", Style::new().dimmed()),
        Status::Warning => ("warning", AnsiColor::Yellow.on_default().bold()),
        Status::Error => ("error", AnsiColor::Red.on_default().bold()),
    }
}

//! Findings as text. An area without problems is one line; a problem has its cause and its remedy,
//! with the commands for this host. The text is complete without colors. `-v` shows everything:
//! passed and skipped checks, evidence, the GPUs, the time of each check and every fact.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use yolo_base::format::{count, duration};
use yolo_checks::{Area, Finding, Status};

use super::inside::Inside;
use super::report::{Report, is_fixable};
use super::verbose;
use crate::printer::{COLUMNS, cut, wrap};

/// The column where an area's state starts; the longest title has 30 letters.
const TITLE: usize = 32;
/// The width of the widest status.
const WORD: usize = 8;

/// The report as text, followed by that of the doctor inside WSL.
pub(super) fn render(report: &Report<'_>, inside: Option<&Inside>, is_verbose: bool) -> String {
    let mut text = String::new();
    show_areas(&mut text, &report.findings(), is_verbose);
    if let Some(inside) = inside {
        show_inside(&mut text, report, inside, is_verbose);
    }
    if is_verbose {
        verbose::append(&mut text, report);
    }
    let _ = write!(text, "\n{}", summary(report, inside, is_verbose));
    text
}

fn show_areas(text: &mut String, findings: &[&Finding], is_verbose: bool) {
    for area in Area::ALL {
        let of_area: Vec<&Finding> =
            findings.iter().copied().filter(|finding| finding.area == area).collect();
        if !of_area.is_empty() {
            show_area(text, area, &of_area, is_verbose);
        }
    }
}

/// What is wrong inside WSL, under a heading of its own.
fn show_inside(text: &mut String, report: &Report<'_>, inside: &Inside, is_verbose: bool) {
    let bold = Style::new().bold();
    let name = inside.distribution.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
    let _ = writeln!(text, "\n{bold}Inside WSL{name}{bold:#}");
    if let Some(why) = inside.why_not() {
        let _ = writeln!(text, "{}", wrap("  not checked: ", &why));
        return;
    }
    let findings = inside.findings(&report.findings());
    show_areas(text, &findings.iter().collect::<Vec<_>>(), is_verbose);
    let has_commands = |finding: &&Finding| {
        finding.status >= Status::Warning
            && finding.remedy.as_ref().is_some_and(|remedy| !remedy.commands.is_empty())
    };
    if let (Some(name), true) = (&inside.distribution, findings.iter().any(|finding| has_commands(&finding)))
    {
        let open = format!("these commands are for Linux, which `wsl.exe -d {name}` opens");
        let _ = writeln!(text, "{}", wrap("  ", &open));
    }
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

fn summary(report: &Report<'_>, inside: Option<&Inside>, is_verbose: bool) -> String {
    let there = inside.map(|inside| inside.findings(&report.findings())).unwrap_or_default();
    let with =
        |status| report.count(status) + there.iter().filter(|finding| finding.status == status).count();
    let (errors, warnings) = (with(Status::Error), with(Status::Warning));
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
    let checks = report.verdicts.len() + inside.map_or(0, Inside::checks);
    let mut text = format!("{found}; {} in {took}", count(checks, "check"));
    let skipped = with(Status::Skipped);
    if skipped > 0 && !is_verbose {
        let _ = write!(text, "; {} skipped (-v shows why)", count(skipped, "finding"));
    }
    let mut lines = vec![wrap("", &text)];
    let fixable = report.fixable();
    if fixable > 0 {
        lines.push(wrap(
            "",
            &format!("`yolo doctor --fix` can fix {}; it asks first", count(fixable, "finding")),
        ));
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

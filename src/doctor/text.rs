//! Findings for people: grouped, one line each, the cause and the remedy under each problem.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use yolo_checks::{Finding, Status};

/// The report as text; with `verbose` also what was seen.
pub(super) fn render(findings: &[Finding], verbose: bool) -> String {
    let mut text = String::new();
    let mut area = None;
    for finding in findings {
        if area != Some(finding.area) {
            let gap = if area.is_some() { "\n" } else { "" };
            line(&mut text, format_args!("{gap}{}", finding.area.title()));
            area = Some(finding.area);
        }
        let (word, style) = mark(finding.status);
        line(&mut text, format_args!("  {style}{word:<7}{style:#} {}", finding.title));
        if verbose {
            finding.evidence.iter().for_each(|seen| line(&mut text, format_args!("          {seen}")));
        }
        if finding.status >= Status::Warning {
            if let Some(cause) = &finding.cause {
                line(&mut text, format_args!("          why: {cause}"));
            }
            if let Some(remedy) = &finding.remedy {
                line(&mut text, format_args!("          do:  {}", remedy.text));
                remedy
                    .commands
                    .iter()
                    .for_each(|command| line(&mut text, format_args!("               {command}")));
            }
        }
    }
    let count = |status| findings.iter().filter(|finding| finding.status == status).count();
    let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    line(
        &mut text,
        format_args!(
            "\n{}, {}",
            plural(count(Status::Error), "error"),
            plural(count(Status::Warning), "warning")
        ),
    );
    text.trim_end().to_owned()
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{arguments}");
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

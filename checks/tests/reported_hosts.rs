//! Scores the doctor on the machines of `tests/reports/`, which real bug reports describe. Its README says
//! how a machine was written and what counts as right.
//!
//! The snapshot lists each machine on which the doctor is wrong, and why. The numbers in `docs/status.md`
//! are compared with the result, so neither can change without the other.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use support::is_produced;
use support::reports::{Report, reports};
use yolo_checks::{Finding, Status, run_all_checks};

/// What is wrong with the doctor's answer for one machine. Both are empty if the answer is right.
struct Verdict {
    /// Findings that are missing, and findings that should not be there.
    findings: Vec<String>,
    /// Texts that the user must read and does not, and the reverse.
    words: Vec<String>,
}

#[test]
fn score_of_the_reported_hosts() {
    let mut scores: BTreeMap<String, [usize; 3]> = BTreeMap::new();
    let mut wrong = String::new();
    for report in reports() {
        let verdict = judge(&report);
        let score = scores.entry(report.set.clone()).or_default();
        score[0] += 1;
        score[1] += usize::from(verdict.findings.is_empty());
        score[2] += usize::from(verdict.findings.is_empty() && verdict.words.is_empty());
        let lines: Vec<String> = verdict.findings.into_iter().chain(verdict.words).collect();
        if !lines.is_empty() {
            writeln!(wrong, "{}/{}", report.set, report.name).unwrap();
            lines.iter().for_each(|line| writeln!(wrong, "    {line}").unwrap());
        }
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("reports");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_description("The machines of bug reports on which the doctor is wrong, and why");
    settings.bind(|| insta::assert_snapshot!("wrong", wrong));
    let status = include_str!("../../docs/status.md");
    for (set, [all, findings, both]) in &scores {
        let row = format!("| {set} | {all} | {findings} | {both} |");
        assert!(status.contains(&row), "docs/status.md does not contain: {row}");
    }
}

fn judge(report: &Report) -> Verdict {
    let shown: Vec<Finding> =
        run_all_checks(&report.host(), &report.intent).into_iter().filter(is_produced).collect();
    let produced: BTreeSet<&str> = shown.iter().map(|finding| finding.id).collect();
    let expected = |id: &str| report.findings.iter().any(|expected| expected == id);
    let missing = report.findings.iter().filter(|id| !produced.contains(id.as_str()));
    let extra = shown.iter().filter(|finding| finding.status >= Status::Warning);
    let extra =
        extra.filter(|finding| !expected(finding.id) && !report.also.iter().any(|id| id == finding.id));
    let findings = missing
        .map(|id| format!("{id} is missing"))
        .chain(extra.map(|finding| format!("{} should not be there", finding.id)))
        .collect();
    let text = shown.iter().filter(|finding| finding.status > Status::Ok).map(text).collect::<String>();
    let says = |words: &String| text.contains(&words.to_lowercase());
    let unsaid = report.must_say.iter().filter(|choice| !choice.iter().any(says));
    let said = report.must_not_say.iter().filter(|words| says(words));
    let words = unsaid
        .map(|choice| format!("does not say “{}”", choice.join("” or “")))
        .chain(said.map(|words| format!("says “{words}”")))
        .collect();
    Verdict { findings, words }
}

/// What a user reads of a finding, in lower case.
fn text(finding: &Finding) -> String {
    let remedy = finding.remedy.iter();
    let remedy = remedy.flat_map(|remedy| [&remedy.text].into_iter().chain(&remedy.commands));
    let parts = [&finding.title].into_iter().chain(&finding.evidence).chain(&finding.cause).chain(remedy);
    parts.flat_map(|part| [part.as_str(), "\n"]).collect::<String>().to_lowercase()
}

//! Runs all checks on every recorded host in `tests/hosts/` and compares the findings with what the host
//! expects and with its snapshot. It reads the folder, so a new host needs no change here.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use support::{Case, base_names, cases, is_produced};
use yolo_checks::{Finding, Intent, NOT_YET_OF_TRAIN, Status, entries, run_all_checks};

/// Bases on which nothing is wrong.
const HEALTHY: [&str; 7] = ["linux-gpu", "linux-cpu", "wsl2", "linux-8-gpus", "mig", "docker", "windows"];

#[test]
fn a_healthy_host_has_no_warnings() {
    for name in HEALTHY {
        for finding in run_all_checks(&support::base(name), &Intent::default()) {
            assert!(finding.status < Status::Warning, "{name}: {finding:#?}");
        }
    }
}

#[test]
fn every_host_produces_the_findings_that_it_expects() {
    let mut wrong = Vec::new();
    for case in cases() {
        let findings = run_all_checks(&case.host(), &case.intent);
        let produced: BTreeSet<&str> =
            findings.iter().filter(|finding| is_produced(finding)).map(|finding| finding.id).collect();
        let problems = findings
            .iter()
            .filter(|finding| finding.area.name() == case.area && finding.status >= Status::Warning)
            .map(|finding| finding.id);
        for id in case.expect.iter().filter(|id| !produced.contains(id.as_str())) {
            wrong.push(format!("{}: {id} is missing", case.name));
        }
        for id in case.not.iter().filter(|id| produced.contains(id.as_str())) {
            wrong.push(format!("{}: {id} must not be produced", case.name));
        }
        for id in problems.filter(|id| !case.expect.iter().any(|expected| expected == id)) {
            wrong.push(format!("{}: {id} is not in \"expect\"", case.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Options of the run belong into the text; those of `docker run` are added to the user's own command.
#[test]
fn no_option_of_the_run_is_shown_as_a_command() {
    for case in cases() {
        for finding in run_all_checks(&case.host(), &case.intent) {
            let commands = finding.remedy.iter().flat_map(|remedy| &remedy.commands);
            let mut options = commands.filter(|one| one.starts_with('-') && !one.starts_with("--shm-size"));
            assert_eq!(options.next(), None, "{}: {}", case.name, finding.id);
        }
    }
}

#[test]
fn a_remedy_names_an_option_that_train_refuses_only_if_the_run_has_it() {
    for case in cases() {
        for finding in run_all_checks(&case.host(), &case.intent) {
            let Some(remedy) = &finding.remedy else { continue };
            for text in remedy.commands.iter().chain([&remedy.text]) {
                for option in NOT_YET_OF_TRAIN {
                    let is_named = text.contains(option) && !case.intent.may_name(option);
                    assert!(!is_named, "{}: {}: {text}", case.name, finding.id);
                }
            }
        }
    }
}

#[test]
fn every_entry_with_a_fix_has_a_host_that_can_be_fixed() {
    let mut proposed = BTreeSet::new();
    for case in cases() {
        for finding in run_all_checks(&case.host(), &case.intent) {
            let remedy = finding.remedy.as_ref();
            if let Some(remedy) = remedy.filter(|remedy| remedy.fixable) {
                assert!(!remedy.changes.is_empty() && remedy.undo.is_some(), "{}: {finding:#?}", case.name);
                proposed.insert(finding.id);
            }
        }
    }
    let promised: BTreeSet<&str> =
        entries().filter(|entry| entry.fix.is_some()).map(|entry| entry.id).collect();
    assert_eq!(promised, proposed);
}

#[test]
fn the_report_of_every_host_matches_its_snapshot() {
    for case in cases() {
        let findings = run_all_checks(&case.host(), &case.intent);
        let mut text = String::new();
        for finding in findings.iter().filter(|finding| finding.area.name() == case.area) {
            describe(&mut text, finding);
        }
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(format!("hosts/{}/snapshots", case.area));
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.set_description(case.about.clone());
        settings.bind(|| insta::assert_snapshot!(case.name.clone(), text));
    }
}

/// A snapshot whose host was renamed or removed shows what no host produces.
#[test]
fn every_snapshot_has_a_host() {
    let names: BTreeSet<(String, String)> = cases().into_iter().map(|case| (case.area, case.name)).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts");
    let mut orphans = Vec::new();
    for area in fs::read_dir(&root).unwrap().map(|entry| entry.unwrap()) {
        let area_name = area.file_name().to_string_lossy().into_owned();
        for file in fs::read_dir(area.path().join("snapshots")).into_iter().flatten() {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if !names.contains(&(area_name.clone(), name)) {
                orphans.push(path);
            }
        }
    }
    assert!(orphans.is_empty(), "no host has these snapshots: {orphans:#?}");
}

fn describe(text: &mut String, finding: &Finding) {
    let status = format!("{:?}", finding.status).to_lowercase();
    writeln!(text, "{status} {}: {}", finding.id, finding.title).unwrap();
    finding.evidence.iter().for_each(|seen| writeln!(text, "    seen: {seen}").unwrap());
    if let Some(cause) = &finding.cause {
        writeln!(text, "    why: {cause}").unwrap();
    }
    if let Some(remedy) = &finding.remedy {
        let fix = if remedy.fixable { " (--fix)" } else { "" };
        writeln!(text, "    do{fix}: {}", remedy.text).unwrap();
        remedy.commands.iter().for_each(|command| writeln!(text, "        {command}").unwrap());
    }
}

#[test]
fn every_entry_has_a_host_that_produces_it_and_one_that_does_not() {
    let hosts: Vec<(String, Vec<Finding>)> = base_names()
        .into_iter()
        .map(|name| (name.clone(), run_all_checks(&support::base(&name), &Intent::default())))
        .chain(
            cases()
                .into_iter()
                .map(|case: Case| (case.name.clone(), run_all_checks(&case.host(), &case.intent))),
        )
        .collect();
    for entry in entries() {
        // A check cannot be made to fail from a recording; its own test makes one.
        if entry.id == "system.check-failed" {
            continue;
        }
        let produces = |findings: &[Finding]| {
            findings.iter().any(|finding| finding.id == entry.id && is_produced(finding))
        };
        assert!(hosts.iter().any(|(_, findings)| produces(findings)), "no host produces {}", entry.id);
        assert!(hosts.iter().any(|(_, findings)| !produces(findings)), "every host produces {}", entry.id);
    }
}

/// Rounded down to hundreds, so that the README does not change with every finding.
#[test]
fn the_readme_has_the_numbers_of_findings_and_hosts() {
    let hundreds = |count: usize| count / 100 * 100;
    let (findings, hosts) = (hundreds(entries().count()), hundreds(base_names().len() + cases().len()));
    let text = format!("more than {findings} findings, tested on more than {hosts} recorded hosts");
    let readme = include_str!("../../README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(readme.contains(&text), "the README does not contain: {text}");
}

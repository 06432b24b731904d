//! Injects faults into recorded hosts: any one fact fails, times out, has a wrong value, or is missing.
//! No check may panic or wait forever, and none may report an unknown fact as a problem. This needs no
//! change when a check is added.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use serde_json::{Value, json};
use yolo_checks::{Finding, Host, Intent, Status, run_all_checks};

/// Judges a broken recording twice: without a run, and for a run on two GPUs of each of two machines.
fn judged(recording: Value) -> Vec<Finding> {
    let (host, _) = Host::from_value(recording).unwrap();
    let run = Intent { run: true, devices: vec![0, 1], nnodes: Some(2), ..Intent::default() };
    let mut findings = run_all_checks(&host, &Intent::default());
    findings.extend(
        run_all_checks(&host, &run).into_iter().filter(|finding| finding.id == "system.check-failed"),
    );
    findings
}

/// Every fact of every base fails once, is missing once, and has one wrong value, of each type in turn.
#[test]
fn any_single_fact_may_fail_be_wrong_or_be_missing() {
    let wrong_values = wrong_values();
    for base in support::base_names() {
        let recording = support::base_recording(&base);
        for (place, fact) in facts(&recording).into_iter().enumerate() {
            for fault in [Fault::Fails, Fault::Missing, wrong_values[place % wrong_values.len()].clone()] {
                for finding in judged(inject(&recording, &fact, &fault)) {
                    assert_ne!(finding.id, "system.check-failed", "{base}: {fact:?} {fault:?}: {finding:#?}");
                }
            }
        }
    }
}

/// A healthy machine stays healthy if one fact times out.
#[test]
fn an_unknown_fact_is_not_a_problem() {
    for base in ["linux-gpu", "linux-cpu", "wsl2"] {
        let recording = support::base_recording(base);
        // For an address that cannot be listened on, the error is the answer.
        for fact in facts(&recording).into_iter().filter(|(section, _)| section != "binds") {
            for fault in [Fault::TimesOut, Fault::Missing] {
                for finding in judged(inject(&recording, &fact, &fault)) {
                    assert!(finding.status < Status::Warning, "{base}: {fact:?} {fault:?}: {finding:#?}");
                }
            }
        }
    }
}

#[test]
fn all_facts_may_be_missing_at_once() {
    for finding in judged(json!({ "version": 1 })) {
        assert_eq!(finding.status, Status::Skipped, "{finding:#?}");
    }
}

/// Opening a pipe without a writer blocks, as a network drive that is gone does.
#[test]
#[cfg(target_os = "linux")]
fn a_file_that_hangs_costs_only_its_budget() {
    use std::time::{Duration, Instant};

    let folder = std::env::temp_dir().join(format!("yolo-checks-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let pipe = folder.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let host = Host::of_this_machine(&yolo_checks::KnownPaths::default());
    let began = Instant::now();
    let why = host.text(&pipe.display().to_string()).unwrap_err();
    assert!(why.to_string().contains("no answer within"), "{why}");
    assert!(began.elapsed() < Duration::from_secs(10));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// What is wrong with a fact.
#[derive(Debug, Clone)]
enum Fault {
    /// It cannot be read.
    Fails,
    /// It takes too long to read, as on a network drive that is gone.
    TimesOut,
    /// The recording does not have it.
    Missing,
    /// It has the wrong type or value.
    Wrong(Value),
}

/// Wrong values of each type.
fn wrong_values() -> Vec<Fault> {
    let values = [
        json!([]),
        json!({}),
        json!(-1),
        json!("\u{0}ä\r\n99999999999999999999"),
        json!({ "base64": "//4AAAD/gIA=" }),
    ];
    values.map(Fault::Wrong).to_vec()
}

/// The location of each fact in a recording: a section, or a row of one.
fn facts(recording: &Value) -> Vec<(String, Option<String>)> {
    /// Sections that are one answer although they are objects.
    const WHOLE: [&str; 4] = ["user", "places", "system", "nvml"];
    let mut facts = Vec::new();
    for (section, answer) in recording.as_object().unwrap() {
        match answer.as_object() {
            _ if matches!(section.as_str(), "version" | "comment" | "yolo" | "intent") => {}
            Some(rows) if !WHOLE.contains(&section.as_str()) => {
                facts.extend(rows.keys().map(|row| (section.clone(), Some(row.clone()))));
            }
            _ => facts.push((section.clone(), None)),
        }
    }
    facts
}

/// The recording with a fault in one fact.
fn inject(recording: &Value, (section, row): &(String, Option<String>), fault: &Fault) -> Value {
    let mut broken = recording.clone();
    let sections = broken.as_object_mut().unwrap();
    let (table, name) = match row {
        Some(row) => (sections[section].as_object_mut().unwrap(), row),
        None => (sections, section),
    };
    match fault {
        Fault::Fails => table.insert(name.clone(), json!({ "error": "permission denied" })),
        Fault::TimesOut => table.insert(name.clone(), json!({ "error": "no answer within 1.5 s" })),
        Fault::Missing => table.remove(name),
        Fault::Wrong(value) => table.insert(name.clone(), value.clone()),
    };
    broken
}

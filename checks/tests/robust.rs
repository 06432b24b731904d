//! Checks cope with any fact: none fails, none waits forever, and none reports an unknown fact as a
//! problem.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/faults.rs"]
mod faults;
mod support;

use faults::Fault;
use yolo_checks::{Finding, Host, Intent, Status, judge};

/// Judges a broken recording twice: as it is, and for a run on two GPUs of two machines.
fn judged(recording: serde_json::Value) -> Vec<Finding> {
    let (host, _) = Host::from_value(recording).unwrap();
    let run = Intent { run: true, devices: vec![0, 1], nnodes: Some(2), ..Intent::default() };
    let mut findings = judge(&host, &Intent::default());
    findings.extend(judge(&host, &run).into_iter().filter(|finding| finding.id == "system.check-failed"));
    findings
}

/// Every fact of every machine fails once, is missing once, and is wrong once, in each way in turn.
#[test]
fn any_single_fact_may_fail_be_wrong_or_be_missing() {
    let lies = faults::lies();
    for base in support::base_names() {
        let recording = support::base_recording(&base);
        for (place, fact) in faults::facts(&recording).into_iter().enumerate() {
            for fault in [Fault::Fails, Fault::Missing, lies[place % lies.len()].clone()] {
                for finding in judged(faults::inject(&recording, &fact, &fault)) {
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
        for fact in faults::facts(&recording).into_iter().filter(|(section, _)| section != "binds") {
            for fault in [Fault::TimesOut, Fault::Missing] {
                for finding in judged(faults::inject(&recording, &fact, &fault)) {
                    assert!(finding.status < Status::Warning, "{base}: {fact:?} {fault:?}: {finding:#?}");
                }
            }
        }
    }
}

#[test]
fn all_facts_may_be_missing_at_once() {
    for finding in judged(serde_json::json!({ "version": 1 })) {
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

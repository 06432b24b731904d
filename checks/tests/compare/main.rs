//! The comparison of machines: every row of its table on two recorded hosts, and what must hold for
//! any two hosts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod rows;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use proptest::prelude::*;
use rows::{rows, run};
use serde_json::{Value, json};
use support::{Case, base_recording, cases, merge};
use yolo_checks::compare::{Comparison, Difference, Machine, State, compare, compared};
use yolo_checks::{Host, Intent, Status};

/// The comparison of machines named a, b, c …
fn compared_hosts(hosts: &[(&Host, &Intent)]) -> Comparison {
    let names = ["a", "b", "c"];
    let machines: Vec<Machine<'_>> =
        hosts.iter().zip(names).map(|((host, intent), name)| Machine { name, host, intent }).collect();
    compare(&machines)
}

fn host(recording: &Value, patch: &Value) -> (Host, Intent) {
    let mut recording = recording.clone();
    merge(&mut recording, patch);
    let (host, intent) = Host::from_value(recording).unwrap();
    (host, intent.unwrap_or_default())
}
fn difference<'a>(comparison: &'a Comparison, id: &str) -> Option<&'a Difference> {
    comparison.differences.iter().find(|difference| difference.id == id)
}

#[test]
fn every_rule_judges_a_difference() {
    let server = base_recording("linux-8-gpus");
    for (id, patch, other, status, text) in rows() {
        let patch = if patch.is_null() { json!({}) } else { patch };
        let (one, intent) = host(&server, &patch);
        let (two, other_intent) = host(&server, &other);
        let comparison = compared_hosts(&[(&one, &intent), (&two, &other_intent)]);
        let found = difference(&comparison, id).unwrap_or_else(|| panic!("{id}: {comparison:#?}"));
        assert_eq!(found.status, status, "{found:#?}");
        let said = format!("{}; {}", found.why, found.remedy.as_deref().unwrap_or_default());
        assert!(said.contains(text), "{id}: {text:?} is not in {said:?}");
        assert_eq!(found.remedy.is_some(), status >= Status::Warning, "{found:#?}");
        assert_ne!(found.values[0], found.values[1], "{found:#?}");
    }
}

#[test]
fn every_rule_has_a_row_here() {
    let rows: BTreeSet<&str> = rows().iter().map(|row| row.0).collect();
    let rules: BTreeSet<&str> = compared().map(|(id, _)| id).collect();
    assert_eq!(rows, rules);
}

#[test]
fn what_always_differs_between_machines_is_no_difference() {
    let server = base_recording("linux-8-gpus");
    let other = json!({
        "time": 1_763_800_000,
        "hostname": "rack-8",
        "user": { "name": "ben", "uid": 1001 },
        "nvml": { "devices": { "0": {
            "uuid": "GPU-00000000-0000-0000-0000-0000000000ff", "temperature": 45,
            "memory": { "used": 900_000_000, "free": 84_999_345_920_u64 }
        } } },
        "interfaces": { "1": { "addresses": ["10.20.0.8/16"] } },
        "files": { "/proc/meminfo": [
            "MemTotal:     1055990000 kB", "MemFree:       700000000 kB", "MemAvailable:  800000000 kB",
            "SwapTotal:             0 kB", "SwapFree:              0 kB"
        ] },
        "filesystems": { "/dev/shm": { "available": 530_000_000_000_u64 } },
    });
    let (one, intent) = host(&server, &json!({}));
    let (two, other_intent) = host(&server, &other);
    let comparison = compared_hosts(&[(&one, &intent), (&two, &other_intent)]);
    assert_eq!(comparison.differences, []);
    assert_eq!(comparison.findings, []);
}

#[test]
fn only_the_gpus_of_the_run_are_compared() {
    let server = base_recording("linux-8-gpus");
    let run = run(json!({}));
    let mut patch = run.clone();
    merge(&mut patch, &json!({ "nvml": { "devices": { "5": { "name": "NVIDIA H100" } } } }));
    let (one, intent) = host(&server, &run);
    let (two, other_intent) = host(&server, &patch);
    let comparison = compared_hosts(&[(&one, &intent), (&two, &other_intent)]);
    assert_eq!(comparison.differences, []);
    let everything = Intent::default();
    let comparison = compared_hosts(&[(&one, &everything), (&two, &everything)]);
    assert!(difference(&comparison, "gpu-model").is_some());
}

#[test]
fn problems_of_one_machine_are_found_and_missing_facts_are_not_taken_for_health() {
    let server = base_recording("linux-8-gpus");
    let (healthy, intent) = host(&server, &json!({}));
    let (sick, _) = host(&server, &json!({ "nvml": { "error": 9 } }));
    let mut without = server.clone();
    without.as_object_mut().unwrap().remove("nvml");
    let (unknown, _) = host(&without, &json!({}));
    let comparison = compared_hosts(&[(&healthy, &intent), (&sick, &intent), (&unknown, &intent)]);
    let found = comparison.findings.iter().find(|finding| finding.id == "gpu.driver-not-loaded").unwrap();
    let states: Vec<State> = found.machines.iter().map(|here| here.state).collect();
    assert_eq!(states, [State::Absent, State::Error, State::Unknown], "{found:#?}");
    assert_eq!(found.status, Status::Error);
    let unread = comparison.unknown.iter().find(|unread| unread.id == "gpu-count").unwrap();
    assert_eq!(unread.reasons.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, true]);
}

#[test]
fn problems_of_all_machines_are_listed_once() {
    let server = base_recording("linux-8-gpus");
    let (sick, intent) = host(&server, &json!({ "nvml": { "error": 9 } }));
    let comparison = compared_hosts(&[(&sick, &intent), (&sick, &intent)]);
    assert_eq!(comparison.shared_findings, ["gpu.driver-not-loaded"]);
    assert_eq!(comparison.findings, []);
}

#[test]
fn a_machine_does_not_differ_from_itself() {
    for case in cases() {
        let (one, two) = (case.host(), case.host());
        let comparison = compared_hosts(&[(&one, &case.intent), (&two, &case.intent)]);
        assert_eq!(comparison.differences, [], "{}", case.name);
        assert_eq!(comparison.findings, [], "{}", case.name);
    }
}

/// The cases, read once.
fn all_cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(cases)
}

/// What was found, regardless of the order of the machines.
fn found(comparison: &Comparison) -> BTreeSet<(String, Status)> {
    let differences = comparison.differences.iter().map(|one| (one.id.to_owned(), one.status));
    let findings = comparison.findings.iter().map(|one| (one.id.to_owned(), one.status));
    differences.chain(findings).collect()
}

proptest! {
    // Each case runs all checks on several hosts.
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_the_machines_does_not_matter(one in 0..1000_usize, two in 0..1000_usize) {
        let cases = all_cases();
        let (one, two) = (&cases[one % cases.len()], &cases[two % cases.len()]);
        let (first, second) = (one.host(), two.host());
        let there = compared_hosts(&[(&first, &one.intent), (&second, &two.intent)]);
        let back = compared_hosts(&[(&second, &two.intent), (&first, &one.intent)]);
        prop_assert_eq!(found(&there), found(&back), "{} and {}", one.name, two.name);
        for difference in &there.differences {
            let mut values = difference.values.clone();
            values.reverse();
            let other = back.differences.iter().find(|other| other.id == difference.id);
            prop_assert_eq!(&other.unwrap().values, &values);
        }
        // The value is that of the first machine, and an amount may differ a little.
        let equal = |of: &Comparison| of.equal.iter().map(|equal| equal.id).collect::<Vec<_>>();
        prop_assert_eq!(equal(&there), equal(&back));
        prop_assert_eq!(there.shared_findings, back.shared_findings);
    }

    #[test]
    fn a_third_machine_like_the_first_changes_nothing(one in 0..1000_usize, two in 0..1000_usize) {
        let cases = all_cases();
        let (one, two) = (&cases[one % cases.len()], &cases[two % cases.len()]);
        let (first, second, third) = (one.host(), two.host(), one.host());
        let pair = compared_hosts(&[(&first, &one.intent), (&second, &two.intent)]);
        let three =
            compared_hosts(&[(&first, &one.intent), (&second, &two.intent), (&third, &one.intent)]);
        // A third value can make a fact comparable that only two of three machines have.
        prop_assert!(found(&pair).is_subset(&found(&three)), "{} and {}", one.name, two.name);
    }
}

//! The catalogue, the checks and the list of known failures agree with each other.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use yolo_checks::catalogue::UNDETECTED;
use yolo_checks::{Area, checks, entries, entry};

fn known_failures() -> BTreeSet<&'static str> {
    let lines = include_str!("known_failures.txt").lines();
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

#[test]
fn every_known_failure_is_either_detected_or_listed_as_undetected() {
    let known = known_failures();
    let detected: BTreeSet<&str> = entries().flat_map(|entry| entry.detects.iter().copied()).collect();
    let undetected: BTreeSet<&str> = UNDETECTED.iter().map(|failure| failure.id).collect();
    assert_eq!(undetected.len(), UNDETECTED.len(), "a failure is listed twice in undetected.rs");
    let both: Vec<_> = detected.intersection(&undetected).collect();
    assert!(both.is_empty(), "detected, but listed in undetected.rs: {both:?}");
    let covered: BTreeSet<&str> = detected.union(&undetected).copied().collect();
    let (missing, unknown) = (known.difference(&covered), covered.difference(&known));
    let (missing, unknown): (Vec<_>, Vec<_>) = (missing.collect(), unknown.collect());
    assert!(missing.is_empty(), "neither in the catalogue nor in undetected.rs: {missing:?}");
    assert!(unknown.is_empty(), "not in known_failures.txt: {unknown:?}");
}

#[test]
fn every_undetected_failure_has_a_reason() {
    for failure in UNDETECTED {
        assert!(failure.reason.split_whitespace().count() >= 5, "{}: {}", failure.id, failure.reason);
    }
}

#[test]
fn every_entry_is_reported_by_exactly_one_check() {
    let rows: BTreeSet<&str> = entries().map(|entry| entry.id).collect();
    let mut reported = BTreeSet::from(["system.check-failed"]);
    for check in checks::all() {
        assert!(check.question.ends_with('?'), "{}", check.question);
        assert!(!check.reports.is_empty(), "{} reports nothing", check.question);
        for id in check.reports {
            assert!(rows.contains(id), "the catalogue has no {id}");
            assert!(reported.insert(id), "two checks report {id}");
        }
    }
    assert_eq!(rows, reported, "an entry is reported by no check");
}

#[test]
fn every_id_in_the_source_of_the_checks_is_in_the_catalogue() {
    let mut sources = Vec::new();
    read_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/checks"), &mut sources);
    let mut ids = BTreeSet::new();
    for source in &sources {
        ids.extend(source.split('"').filter(|literal| looks_like_an_id(literal)));
    }
    assert!(ids.len() > 200, "only {} ids found: is the source elsewhere?", ids.len());
    for id in ids {
        assert!(entry(id).is_some(), "the catalogue has no {id}");
    }
}

fn read_sources(folder: &Path, sources: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_sources(&path, sources);
        } else {
            sources.push(fs::read_to_string(path).unwrap());
        }
    }
}

/// An area, a dot, and words in lower case with hyphens.
fn looks_like_an_id(literal: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    literal.split_once('.').is_some_and(|(area, words)| {
        Area::ALL.iter().any(|known| known.name() == area) && !words.is_empty() && words.bytes().all(is_word)
    })
}

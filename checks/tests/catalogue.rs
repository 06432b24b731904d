//! The catalogue, the checks and the known failures agree.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use std::fs;
use std::path::Path;

use yolo_checks::catalogue::EXCUSED;
use yolo_checks::{Area, checks, entries, entry};

/// Id and area of every known failure.
fn known() -> BTreeMap<&'static str, &'static str> {
    lines(include_str!("failures/ids.txt")).map(|line| line.split_once(' ').unwrap()).collect()
}

/// Failures that nobody has looked at yet; the list only shrinks.
fn open() -> BTreeSet<&'static str> {
    lines(include_str!("failures/open.txt")).collect()
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn detected() -> BTreeSet<&'static str> {
    entries().flat_map(|entry| entry.detects.iter().copied()).collect()
}

#[test]
fn every_known_failure_is_detected_or_excused() {
    let (known, open, detected) = (known(), open(), detected());
    let excused: BTreeSet<&str> = EXCUSED.iter().map(|excused| excused.failure).collect();
    assert_eq!(excused.len(), EXCUSED.len(), "a failure is excused twice");
    for id in detected.iter().chain(&excused).chain(&open) {
        assert!(known.contains_key(id), "there is no known failure {id}");
    }
    for id in known.keys() {
        let places = [&detected, &excused, &open].iter().filter(|list| list.contains(id)).count();
        assert_eq!(places, 1, "{id} must stand in exactly one of: catalogue, excused, open");
    }
}

#[test]
fn an_excuse_has_a_reason() {
    for excused in EXCUSED {
        assert!(excused.reason.split_whitespace().count() >= 5, "{}: {}", excused.failure, excused.reason);
    }
}

#[test]
fn checks_report_what_the_catalogue_has() {
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
    assert_eq!(rows, reported, "a row that no check reports");
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

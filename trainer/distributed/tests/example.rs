//! Runs the example that the README names. Cargo builds examples before it runs tests.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

#[test]
fn the_example_trains_on_two_processes() {
    let test = std::env::current_exe().unwrap();
    let example = test.ancestors().nth(2).unwrap().join("examples").join("two_ranks");
    let output = Command::new(example).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let loss = |line: &str| line.split_once("loss").unwrap().1.trim().parse::<f64>().unwrap();
    let losses: Vec<f64> = text.lines().map(loss).collect();
    assert_eq!(losses.len(), 6, "{text}");
    assert!(losses[5] < losses[0] / 1000.0, "{text}");
}

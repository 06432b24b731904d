//! Runs the examples that the README names. Cargo builds examples before it runs tests.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

/// What an example prints.
fn run(name: &str, arguments: &[&str]) -> String {
    let test = std::env::current_exe().unwrap();
    let example = test.ancestors().nth(2).unwrap().join("examples").join(name);
    let output = Command::new(example).args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn losses(text: &str) -> Vec<f64> {
    let loss = |line: &str| line.split_once("loss").unwrap().1.trim().parse().unwrap();
    text.lines().map(loss).collect()
}

#[test]
fn two_ranks_fit_a_line() {
    let text = run("two_ranks", &[]);
    let losses = losses(&text);
    assert_eq!(losses.len(), 6, "{text}");
    assert!(losses[5] < losses[0] / 1000.0, "{text}");
}

#[test]
fn two_ranks_train_a_net() {
    let text = run("ddp", &[]);
    let losses = losses(&text);
    assert_eq!(losses.len(), 5, "{text}");
    assert!(losses[4] < losses[0] / 10.0, "{text}");
}

#[test]
fn the_benchmark_prints_a_median() {
    let text = run("all_reduce", &["70000", "20"]);
    assert!(text.starts_with("all-reduce of 70000 bytes  median "), "{text}");
}

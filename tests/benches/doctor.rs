//! Measures how long a user waits for `yolo doctor` on this machine: starts the program repeatedly and
//! prints the shortest, median and longest time, and the slowest checks. Run it with
//! `cargo bench --bench doctor`, which builds with the release profile.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and fails by panicking")]

use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Measured runs, after two runs that only warm the caches.
const RUNS: usize = 21;

fn main() {
    for (name, arguments) in [
        ("yolo doctor", vec!["doctor"]),
        ("with a planned run", vec!["doctor", "--", "--device", "cpu", "--data", "shapes"]),
    ] {
        doctor(&arguments);
        doctor(&arguments);
        let mut times: Vec<Duration> = (0..RUNS).map(|_| doctor(&arguments).0).collect();
        times.sort();
        let seconds = |index: usize| times[index].as_secs_f64();
        println!(
            "{name:<18} {:.3} s minimum, {:.3} s median, {:.3} s maximum of {RUNS} runs",
            seconds(0),
            seconds(RUNS / 2),
            seconds(RUNS - 1)
        );
    }
    println!("\nslowest checks, including the time to read facts that no earlier check had read:");
    let report: serde_json::Value = serde_json::from_slice(&doctor(&["doctor", "--json"]).1.stdout).unwrap();
    let mut checks: Vec<(f64, &str)> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| (check["milliseconds"].as_f64().unwrap(), check["question"].as_str().unwrap()))
        .collect();
    checks.sort_by(|one, other| other.0.total_cmp(&one.0));
    checks.iter().take(8).for_each(|(time, question)| println!("{time:>8.1} ms  {question}"));
}

fn doctor(arguments: &[&str]) -> (Duration, Output) {
    let began = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_yolo")).args(arguments).output().unwrap();
    let took = began.elapsed();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
    (took, output)
}

//! How long the quick doctor takes on this machine, as a user waits for it: the program is started
//! again and again, and the shortest, the middle and the longest time are printed, with the checks
//! that took longest. `cargo bench --bench doctor` builds it as it is released.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and fails by panicking")]

use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Times that are measured, after two that only warm the caches.
const TIMES: usize = 21;

fn main() {
    for (name, words) in [
        ("yolo doctor", vec!["doctor"]),
        ("with a run", vec!["doctor", "--", "--device", "cpu", "--data", "shapes"]),
    ] {
        doctor(&words);
        doctor(&words);
        let mut times: Vec<Duration> = (0..TIMES).map(|_| doctor(&words).0).collect();
        times.sort();
        let seconds = |place: usize| times[place].as_secs_f64();
        println!(
            "{name:<12} {:.3} s at best, {:.3} s in the middle, {:.3} s at worst of {TIMES}",
            seconds(0),
            seconds(TIMES / 2),
            seconds(TIMES - 1)
        );
    }
    println!("\nslowest checks, with the facts that they were the first to ask for:");
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

fn doctor(words: &[&str]) -> (Duration, Output) {
    let began = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_yolo")).args(words).output().unwrap();
    let took = began.elapsed();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
    (took, output)
}

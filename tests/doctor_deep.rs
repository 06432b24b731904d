//! `yolo doctor --deep` on the processor, with the libtorch and the trainer that `yolo setup` has
//! installed.

// Ranks run on Linux, and in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::time::{Duration, Instant};

use serde_json::Value;
use user::{User, lives, until};

/// `kill -STOP`.
const SIGSTOP: i32 = 19;

#[test]
fn two_ranks_compute_sum_and_read() {
    let user = User::new();
    let data = user.data();
    let began = Instant::now();
    let words = format!("doctor --deep --json --device cpu --nproc-per-node 2 --data {}", data.display());
    let answer = user.types(&words).succeeded();
    assert!(began.elapsed() < Duration::from_secs(60));
    let report: Value = serde_json::from_str(&answer.stdout).unwrap();
    let ranks = report["ranks"].as_array().unwrap();
    assert_eq!(ranks.len(), 2);
    for rank in ranks {
        for measure in
            ["matrix-product", "memory-copy", "all-reduce", "all-reduce-rate", "disk-read", "decode"]
        {
            assert!(rank["measured"][measure].as_f64().is_some_and(|value| value > 0.0), "{measure}: {rank}");
        }
    }
    assert_eq!(report["errors"], serde_json::json!([]));
}

#[test]
#[cfg(target_os = "linux")]
fn a_rank_that_hangs_is_named_and_nothing_is_left() {
    let user = User::new();
    let began = Instant::now();
    let running = user.starts("doctor --deep --device cpu --nproc-per-node 2");
    let ranks = until("two ranks", || Some(running.ranks()).filter(|ranks| ranks.len() == 2));
    user::send(ranks[1], SIGSTOP);
    let answer = running.waits();
    assert_eq!(answer.code, Some(1), "{}\n{}", answer.stdout, answer.stderr);
    assert!(answer.stdout.contains("rank 1") && answer.stdout.contains("was"), "{}", answer.stdout);
    assert!(began.elapsed() < Duration::from_secs(60));
    assert!(!ranks.into_iter().any(lives));
}

#[test]
fn a_data_set_that_is_not_there_is_misuse() {
    User::new().types("doctor --deep --device cpu --data no-such.yaml").refused(2, &["no-such.yaml"]);
}

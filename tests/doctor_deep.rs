//! `yolo doctor --deep` on the CPU, with the libtorch and the trainer that `yolo setup` installed.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::time::{Duration, Instant};

use serde_json::Value;
use user::{SIGSTOP, User, is_alive, wait_for};

#[test]
fn two_ranks_run_all_measurements() {
    let user = User::new();
    let data = user.write_data_set();
    let began = Instant::now();
    let arguments = format!("doctor --deep --json --device cpu --nproc-per-node 2 --data {}", data.display());
    let output = user.run(&arguments).succeeded();
    assert!(began.elapsed() < Duration::from_secs(180));
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
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
    // Both directions, directly and by the host.
    let copies = report["copies"].as_array().unwrap();
    assert_eq!(copies.len(), 4, "{copies:?}");
    assert!(copies.iter().all(|copy| copy["wrong"] == 0 && copy["rate"].as_f64().unwrap() > 0.0));
    assert_eq!(report["expected"], Value::Null);
}

#[test]
fn a_planned_run_gets_its_bounds_and_three_ranks_their_pairs() {
    let user = User::new();
    let data = user.write_data_set();
    let run = format!("--device cpu,cpu,cpu --data {} --cfg yolov5n --imgsz 64 --batch 9", data.display());
    let output = user.run(&format!("doctor --deep --json -- {run}")).succeeded();
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    let pairs = report["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 3);
    assert!(pairs.iter().all(|pair| pair["tried"] == true && pair["failure"] == Value::Null), "{pairs:?}");
    let expected = &report["expected"];
    let parts: Vec<&str> =
        expected["bounds"].as_array().unwrap().iter().map(|bound| bound["part"].as_str().unwrap()).collect();
    assert_eq!(parts, ["disk", "decoder", "device", "link"]);
    assert!(expected["bottleneck"].as_str().is_none_or(|part| parts.contains(&part)));
    let text = user.run(&format!("doctor --deep -- {run}")).succeeded().stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in
        ["in images per second:", "limits it", "images/s", "copies directly, GB/s to", "3 pairs of ranks"]
    {
        assert!(text.contains(words), "{words} is not in:\n{text}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_hanging_rank_is_named_and_no_process_is_left() {
    let user = User::new();
    let began = Instant::now();
    let running = user.start("doctor --deep --device cpu --nproc-per-node 2");
    let ranks = wait_for("two ranks", || Some(running.ranks()).filter(|ranks| ranks.len() == 2));
    user::send_signal(ranks[1], SIGSTOP);
    let output = running.wait();
    assert_eq!(output.code, Some(1), "{}\n{}", output.stdout, output.stderr);
    // The message is wrapped, and rank 1 may have been stopped in any of its phases.
    let text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let phases = [
        "starting",
        "waiting for the other ranks",
        "multiplying matrices",
        "copying in device memory",
        "summing over all ranks",
        "measuring the rate of sums over all ranks",
    ];
    let named = text.contains("error rank 1 of 2 ");
    assert!(
        named && phases.iter().any(|phase| text.contains(&format!("(it was {phase})"))),
        "{}",
        output.stdout
    );
    assert!(began.elapsed() < Duration::from_secs(180));
    assert!(!ranks.into_iter().any(is_alive));
}

#[test]
fn a_missing_data_set_is_a_usage_error() {
    User::new().run("doctor --deep --device cpu --data no-such.yaml").failed_with(2, &["no-such.yaml"]);
}

//! The logs of ranks, as somebody reads them who wants to know what happened on one of many machines: each line of
//! `yolo` has the time in UTC, and what libraries write stays as it is.

// Ranks run on Linux, and in WSL.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::time::{Duration, SystemTime};

use user::{SIGINT, SIGKILL, TRAIN, User, send_signal, wait_for};

/// The log of a rank, with the time of each line.
fn log(user: &User, rank: usize) -> Vec<(SystemTime, String)> {
    let path = user.path().join(format!("runs/train/exp/logs/rank{rank}.log"));
    let text = std::fs::read_to_string(path).unwrap();
    let line = |line: &str| {
        let (time, text) = line.split_once(" yolo: ").unwrap_or_else(|| panic!("no time: {line}"));
        (humantime::parse_rfc3339(time).unwrap(), text.to_owned())
    };
    text.lines().map(line).collect()
}

/// Fails unless lines begin like these, in this order.
#[track_caller]
fn assert_tells(log: &[(SystemTime, String)], beginnings: &[&str]) {
    let mut lines = log.iter().map(|(_, text)| text);
    for beginning in beginnings {
        assert!(lines.any(|line| line.starts_with(beginning)), "{beginning:?} is not in order in {log:#?}");
    }
}

#[test]
fn each_rank_tells_what_happened_and_when() {
    let user = User::new();
    user.write_data_set();
    let before = SystemTime::now() - Duration::from_millis(1);
    user.run(&format!("{TRAIN} --noplots --epochs 2 --nproc-per-node 2")).succeeded();
    for rank in 0..2 {
        let log = log(&user, rank);
        assert!(log.iter().all(|(time, _)| (before..=SystemTime::now()).contains(time)), "{log:#?}");
        assert!(log.is_sorted_by_key(|(time, _)| *time), "{log:#?}");
        let started = format!("yolo {} started rank {rank} of 2 as process ", env!("CARGO_PKG_VERSION"));
        let trainer = format!("yolo-trainer {} runs on cpu with 1 thread", env!("CARGO_PKG_VERSION"));
        let each = [
            &started,
            &trainer,
            "waiting for the other ranks",
            "reading labels",
            "training epoch 1 of 2",
            "training epoch 2 of 2",
            "the process ended with exit status 0",
        ];
        assert_tells(&log, &each);
        let (_, first) = &log[0];
        assert!(first.contains(": device cpu, backend gloo, libtorch 2.11.0+"), "{first}");
    }
    // Rank 0 alone has the results.
    assert_tells(&log(&user, 0), &["epoch 1 of 2 in ", "epoch 2 of 2 in ", "finished: 2 epochs in "]);
}

#[test]
fn a_resumed_run_continues_its_logs() {
    let user = User::new();
    user.write_data_set();
    let running = user.start(&format!("{TRAIN} --noplots --epochs 500"));
    let last = user.path().join("runs/train/exp/weights/last.pt");
    wait_for("the first checkpoint", || last.exists().then_some(()));
    running.signal(SIGINT);
    assert_eq!(running.wait().code, Some(130));
    let again = user.start("train --resume runs/train/exp");
    let rank = wait_for("the rank", || again.ranks().first().copied());
    wait_for("it to train", || {
        let log = log(&user, 0);
        let begin = |text: &str| text.contains(" started rank 0 of 1 ");
        let starts = log.iter().filter(|(_, text)| begin(text)).count();
        let mut now = log.iter().rev().take_while(|(_, text)| !begin(text));
        let trains = now.any(|(_, text)| text.starts_with("epoch "));
        (starts == 2 && trains).then_some(())
    });
    send_signal(rank, SIGKILL);
    let output = again.wait().failed_with(1, &["was killed by signal 9 (SIGKILL)"]);
    assert!(!output.stderr.contains("the last lines of"), "no library wrote a line:\n{}", output.stderr);
    let tells = [
        "yolo ",
        "asked to save and end (SIGTERM)",
        "saving the interrupted run",
        "interrupted; the state of the run is in ",
        "the process ended with exit status 130",
        "yolo ",
        "the process was ended by signal 9 (SIGKILL)",
    ];
    assert_tells(&log(&user, 0), &tells);
}

#[test]
fn a_message_quotes_what_a_library_wrote_and_nothing_else() {
    let user = User::new();
    user.write_data_set();
    // The trainer says hello, warns, and gives up like a library in C++.
    let script = r#"#!/usr/bin/env bash
echo '{"event":"hello","protocol":2,"version":"VERSION","rank":0,"pid":1,"device":"cpu","threads":1}' >&$YOLO_EVENTS_FD
echo '{"event":"warning","message":"this is a warning"}' >&$YOLO_EVENTS_FD
echo "terminate called after throwing an instance of 'c10::Error'" >&2
kill -ABRT $$
"#;
    let trainer = user.write_program("trainer", &script.replace("VERSION", env!("CARGO_PKG_VERSION")));
    let mut command = user.command(&format!("{TRAIN} --noplots --epochs 1"));
    let output = user::Finished::from(command.env("YOLO_TRAINER", &trainer).output().unwrap());
    let said = "rank0.log:\n  terminate called after throwing an instance of 'c10::Error'\n";
    let output = output.failed_with(1, &["signal 6 (SIGABRT): a library gave up", said]);
    let quoted = output.stderr.split(said).nth(1).unwrap();
    assert!(!quoted.contains(" yolo: "), "{}", output.stderr);
    let log = std::fs::read_to_string(user.path().join("runs/train/exp/logs/rank0.log")).unwrap();
    for line in ["warning: this is a warning", "the process was ended by signal 6 (SIGABRT)"] {
        assert!(log.contains(&format!(" yolo: {line}\n")), "{log}");
    }
    // The library may write before `yolo` notes that the rank has started.
    assert!(log.lines().any(|line| line.starts_with("terminate called")), "{log}");
}

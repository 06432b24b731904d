//! `yolo train --workers auto` as a user runs it: what is measured and chosen, where the number is kept, and where
//! the option is refused.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/observed_trainer.rs"]
mod observed_trainer;
#[path = "support/user.rs"]
mod user;

use std::path::PathBuf;

use observed_trainer::ObservedTrainer;
use user::{Finished, SIGINT, TRAIN, User};

/// The most loader threads that one rank may have here with a batch of 8.
fn most() -> usize {
    std::thread::available_parallelism().unwrap().get().min(8)
}

/// The number in `opt.yaml` and in the plan of a run.
fn number_of(user: &User, run: &str) -> usize {
    let folder: PathBuf = user.path().join("runs/train").join(run);
    let yaml = std::fs::read_to_string(folder.join("opt.yaml")).unwrap();
    let line = yaml.lines().find_map(|line| line.strip_prefix("workers: ")).unwrap();
    let plan = std::fs::read_to_string(folder.join("plan.json")).unwrap();
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan["task"]["workers"], line.trim().parse::<usize>().unwrap());
    line.trim().parse().unwrap()
}

/// The number that the output names, with its reason.
#[track_caller]
fn said(output: &Finished) -> (usize, String) {
    let last = output.stderr.lines().filter_map(|line| line.strip_prefix("--workers auto: ")).next_back();
    let (number, reason) = last.and_then(|line| line.split_once(", as ")).expect(&output.stderr);
    (number.parse().expect(&output.stderr), reason.to_owned())
}

#[test]
fn the_measured_number_is_said_and_kept() {
    let user = User::new();
    user.write_data_set();
    let output = user.run(&format!("{TRAIN} --noplots --epochs 1 --workers auto")).succeeded();
    let (number, reason) = said(&output);
    assert!((1..=most()).contains(&number), "{number}");
    if most() > 1 {
        assert!(reason.contains(" images/s") && reason.contains("the network"), "{reason}");
    }
    assert_eq!(number_of(&user, "exp"), number);
    assert!(!user.path().join("runs/bench").exists());
    // Results do not depend on the number of threads.
    user.run(&format!("{TRAIN} --noplots --epochs 1 --workers 1")).succeeded();
    let results = |run: &str| {
        std::fs::read_to_string(user.path().join("runs/train").join(run).join("results.csv")).unwrap()
    };
    assert_eq!(results("exp"), results("exp2"));
}

#[test]
fn a_batch_of_one_image_per_rank_needs_no_measurement() {
    let user = User::new();
    user.write_data_set();
    let ranks = "--nproc-per-node 2 --batch 2 --workers auto";
    let output = user.run(&format!("{TRAIN} --noplots --epochs 1 {ranks}")).succeeded();
    assert_eq!(said(&output).0, 1);
    assert!(!output.stderr.contains("measuring how many"), "{}", output.stderr);
    assert_eq!(number_of(&user, "exp"), 1);
}

#[test]
fn ctrl_c_while_measuring_leaves_no_run() {
    if most() == 1 {
        println!("skipped: with one core there is nothing to measure");
        return;
    }
    let user = User::new();
    user.write_data_set();
    let trainer = ObservedTrainer::new(&user);
    let running = trainer.start(&user, &format!("{TRAIN} --epochs 500 --workers auto"));
    trainer.wait_for("measuring training on a synthetic batch");
    running.signal(SIGINT);
    let output = running.wait();
    assert_eq!(output.code, Some(130), "{}", output.stderr);
    assert!(output.stderr.contains("interrupted before the run began"), "{}", output.stderr);
    assert!(!user.path().join("runs").exists());
}

#[test]
fn several_machines_and_launchers_are_refused() {
    let user = User::new();
    user.write_data_set();
    let place = "--nnodes 2 --node-rank 0 --master-addr 127.0.0.1";
    user.run(&format!("{TRAIN} --workers auto {place}"))
        .failed_with(2, &["--workers auto is for a run", "with --nnodes", "yolo bench --workers auto"]);
    let variables = [("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_WORLD_SIZE", "1")];
    let rank = TRAIN.replacen("train", "rank", 1);
    let meet = [("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29500")];
    user.start_with(&format!("{rank} --workers auto"), &[&variables[..], &meet[..]].concat())
        .wait()
        .failed_with(2, &["--workers auto is for a run", "in `yolo rank`"]);
    user.run(&format!("{TRAIN} --workers many")).failed_with(2, &["not a whole number, and not auto"]);
}

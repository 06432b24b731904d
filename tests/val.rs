//! `yolo val` as a user runs it: the metrics of a trained detector, and an interruption.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use user::{User, wait_for};

/// A run of a few seconds: tiny images, one rank, a small batch.
const TRAIN: &str = "train --data squares/squares.yaml --cfg yolov5n --weights= --imgsz 64 --batch 8 --nbs 8 --device cpu --workers 1";
const VAL: &str =
    "val --data squares/squares.yaml --weights runs/train/exp/weights/best.pt --imgsz 64 --device cpu";

/// The lines of the table of metrics that are about all classes.
fn table_of(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.trim_start().starts_with("all ")).collect()
}

#[test]
fn val_prints_the_metrics_that_training_printed() {
    let user = User::new();
    user.write_data_set();
    let trained = user.run(&format!("{TRAIN} --epochs 2")).succeeded();
    let validated = user.run(&format!("{VAL} --batch 16")).succeeded();
    assert!(!table_of(&trained.stdout).is_empty(), "{}", trained.stdout);
    assert_eq!(table_of(&trained.stdout), table_of(&validated.stdout));
}

#[test]
fn ctrl_c_during_val_exits_as_interrupted() {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{TRAIN} --epochs 1")).succeeded();
    let running = user.start(&format!("{VAL} --batch 1 --task study"));
    let study = user.path().join("runs/val/exp/study_squares_best.txt");
    wait_for("the first size of the study", || {
        std::fs::read_to_string(&study).ok().filter(|text| !text.is_empty())
    });
    running.signal(2);
    let output = running.wait();
    assert_eq!(output.code, Some(130), "{}", output.stderr);
}

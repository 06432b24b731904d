//! `yolo val` as a user runs it: the metrics of a trained detector, and an interruption.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use user::{SIGINT, TRAIN, User, wait_for};

const VAL: &str =
    "val --data squares/squares.yaml --weights runs/train/exp/weights/best.pt --imgsz 64 --device cpu";

#[test]
fn val_prints_the_metrics_that_training_printed() {
    let user = User::new();
    user.write_data_set();
    let trained = user.run(&format!("{TRAIN} --epochs 2")).succeeded();
    let validated = user.run(&format!("{VAL} --batch 16")).succeeded();
    assert_eq!(trained.table(), validated.table());
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
    running.signal(SIGINT);
    let output = running.wait();
    assert_eq!(output.code, Some(130), "{}", output.stderr);
}

//! `yolo train` as a user runs it: the files of a run, and failures of ranks. `train_interrupted.rs`
//! tests interruption and resumption.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::process::Stdio;

use torch_checkpoint::read;
use user::{Finished, SIGCONT, SIGKILL, SIGSTOP, TRAIN, User, is_alive, send_signal, wait_for};

#[test]
fn a_run_writes_its_files() {
    let user = User::new();
    user.write_data_set();
    let trained = user.run(&format!("{TRAIN} --epochs 2 --save-period 1")).succeeded();
    let run = user.path().join("runs/train/exp");
    for file in [
        "weights/best.pt",
        "weights/last.pt",
        "weights/epoch1.pt",
        "results.csv",
        "results.svg",
        "results.png",
        "report.html",
        "report.json",
        "labels.svg",
        "labels.jpg",
        "confusion_matrix.png",
        "PR_curve.png",
        "F1_curve.png",
        "P_curve.png",
        "R_curve.png",
        "hyp.yaml",
        "opt.yaml",
        "train_batch0.jpg",
        "val_batch0_labels.jpg",
        "val_batch0_pred.jpg",
        "plan.json",
        "logs/rank0.log",
    ] {
        assert!(run.join(file).is_file(), "{file} is missing");
    }
    for file in ["best.pt", "results.csv", "results.svg", "report.html"] {
        assert!(trained.stdout.contains(file), "{file} is not in:\n{}", trained.stdout);
    }
    let rows = std::fs::read_to_string(run.join("results.csv")).unwrap();
    assert_eq!(rows.lines().count(), 3, "a header and two epochs:\n{rows}");

    user.run(&format!("{TRAIN} --epochs 1")).succeeded();
    assert!(user.path().join("runs/train/exp2/weights/best.pt").is_file(), "the second run has no folder");
}

#[test]
fn the_built_in_data_set_is_generated_once() {
    let user = User::new();
    let arguments = "train --data shapes --epochs 1 --imgsz 64 --device cpu";
    let message = "created the built-in data set in";
    // A home of its own: in the tester's, the data set may exist already. `yolo` ignores a LIBTORCH that
    // is the checkout's link, so the folder behind it is passed.
    let libtorch = std::fs::canonicalize(std::env::var_os("LIBTORCH").unwrap()).unwrap();
    let run = || {
        let mut command = user.command(arguments);
        command.env("YOLO_HOME", user.path().join("home")).env("LIBTORCH", &libtorch);
        command.stdin(Stdio::null());
        Finished::from(command.output().unwrap()).succeeded()
    };
    let first = run();
    assert!(first.stderr.contains(message), "{}", first.stderr);
    let second = run();
    assert!(!second.stderr.contains(message), "{}", second.stderr);
    assert!(user.path().join("runs/train/exp2/weights/best.pt").is_file());
}

#[test]
fn anchors_of_the_hyperparameters_replace_those_of_the_weights() {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{TRAIN} --epochs 1 --noplots")).succeeded();
    let first = user.path().join("runs/train/exp");
    let hyp = std::fs::read_to_string(first.join("hyp.yaml")).unwrap();
    std::fs::write(user.path().join("hyp.yaml"), format!("{hyp}\nanchors: 4\n")).unwrap();
    let fine_tuning = TRAIN.replace("--cfg yolov5n --weights=", "--weights runs/train/exp/weights/best.pt");
    user.run(&format!("{fine_tuning} --epochs 1 --noplots --hyp hyp.yaml")).succeeded();
    let anchors = |run: &str| {
        let weights = read(&user.path().join("runs/train").join(run).join("weights/best.pt")).unwrap();
        weights.tensors["model.24.anchors"].shape.clone()
    };
    assert_eq!(anchors("exp"), [3, 3, 2]);
    assert_eq!(anchors("exp2"), [3, 4, 2]);
}

#[test]
fn training_on_two_ranks_leaves_no_process() {
    let user = User::new();
    user.write_data_set();
    let (running, ranks) = user.start_two_ranks(&format!("{TRAIN} --epochs 3"), &[]);
    running.wait().succeeded();
    assert!(user.path().join("runs/train/exp/weights/best.pt").is_file());
    assert!(ranks.into_iter().all(|pid| !is_alive(pid)));
}

#[test]
fn a_killed_rank_is_named_and_the_others_are_stopped() {
    let user = User::new();
    user.write_data_set();
    let (running, ranks) = user.start_two_ranks(&format!("{TRAIN} --epochs 500"), &[]);
    // The signal arrives in whatever the rank does then: a step, a validation, or a pause between them.
    send_signal(ranks[1], SIGKILL);
    running.wait().failed_with(1, &["rank 1 of 2", "signal 9 (SIGKILL)", "(it was ", "--resume"]);
    assert!(ranks.into_iter().all(|pid| !is_alive(pid)));
}

#[test]
fn a_hanging_rank_is_detected_and_named() {
    let user = User::new();
    user.write_data_set();
    let shortened = [("YOLO_SILENCE_SECONDS", "6")];
    let (running, ranks) = user.start_two_ranks(&format!("{TRAIN} --epochs 500"), &shortened);
    send_signal(ranks[1], SIGSTOP);
    running.wait().failed_with(1, &["rank 1 of 2", "no heartbeat for 6 s", "state T", "--resume"]);
    assert!(ranks.into_iter().all(|pid| !is_alive(pid)));
}

/// The only test that depends on the machine's speed: the stopped rank must be seen as silent for 2
/// of the allowed 8 seconds, and how long it was silent can only be measured in time.
#[test]
fn a_rank_that_continues_before_the_timeout_is_not_stopped() {
    let user = User::new();
    user.write_data_set();
    let shortened = [("YOLO_SILENCE_SECONDS", "8")];
    let (running, ranks) = user.start_two_ranks(&format!("{TRAIN} --epochs 12"), &shortened);
    send_signal(ranks[1], SIGSTOP);
    std::thread::sleep(std::time::Duration::from_secs(2));
    send_signal(ranks[1], SIGCONT);
    running.wait().succeeded();
}

#[test]
fn no_rank_outlives_a_killed_supervisor() {
    let user = User::new();
    user.write_data_set();
    let (running, ranks) = user.start_two_ranks(&format!("{TRAIN} --epochs 500"), &[]);
    running.signal(SIGKILL);
    running.wait();
    wait_for("the end of all ranks", || ranks.iter().all(|&pid| !is_alive(pid)).then_some(()));
}

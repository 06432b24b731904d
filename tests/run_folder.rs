//! The folder of a run belongs to one run: while it runs, another one is refused, and what an earlier run left there
//! never becomes part of a new one.

// Ranks run on Linux, and in WSL.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/steered_trainer.rs"]
mod steered_trainer;
#[path = "support/user.rs"]
mod user;

use steered_trainer::{Act, Moment, SteeredTrainer};
use user::{SIGINT, TRAIN, User, wait_for};

#[test]
fn a_folder_in_use_is_refused() {
    let user = User::new();
    user.write_data_set();
    let running = user.start(&format!("{TRAIN} --noplots --epochs 10000 --name mine"));
    let run = user.path().join("runs/train/mine");
    wait_for("the first checkpoint", || run.join("weights/last.pt").exists().then_some(()));
    let plan = std::fs::read(run.join("plan.json")).unwrap();
    let process = format!("is in use by another run, process {}", running.pid());
    for arguments in ["train --resume runs/train/mine", &format!("{TRAIN} --name mine --exist-ok")] {
        user.run(arguments).failed_with(1, &["runs/train/mine", &process, "wait until that run has ended"]);
    }
    assert!(std::fs::read(run.join("plan.json")).unwrap() == plan, "its plan was replaced");
    running.signal(SIGINT);
    assert_eq!(running.wait().code, Some(130));
    // The lock ends with the run.
    let again = user.start("train --resume runs/train/mine");
    wait_for("the rank", || again.ranks().first().copied());
    again.signal(SIGINT);
    assert_eq!(again.wait().code, Some(130));
}

/// The weights, options and results of two runs must not mix.
#[test]
fn a_run_that_replaces_another_is_never_resumed_from_its_checkpoint() {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{TRAIN} --noplots --epochs 1 --name twice")).succeeded();
    let weights = user.path().join("runs/train/twice/weights");
    let arguments = format!("{TRAIN} --noplots --epochs 2 --name twice --exist-ok");
    let at = Moment::when("building the model");
    let killed = SteeredTrainer::new(&user).run(&user, &arguments, 1, Act::Kill, at);
    assert!(killed.stderr.contains("start the run again with `yolo train --resume "), "{}", killed.stderr);
    assert!(!weights.join("last.pt").exists() && weights.join("last_of_earlier_run.pt").exists());

    user.run("train --resume runs/train/twice").succeeded();
    let rows = std::fs::read_to_string(user.path().join("runs/train/twice/results.csv")).unwrap();
    assert_eq!(rows.lines().count(), 3, "{rows}");
}

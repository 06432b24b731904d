//! `yolo train` and `yolo val` as a user runs them: a run to its files, the same numbers again,
//! an interruption and its continuation, and runs on two ranks.

// Ranks run on Linux, and in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use torch_checkpoint::{Value, read};
use user::{User, lives, send, until};

/// A run of seconds: tiny images, one process, a small batch.
const QUICK: &str = "train --data squares/squares.yaml --cfg yolov5n --weights= --imgsz 64 --batch 8 --nbs 8 --device cpu --workers 1";

/// [`QUICK`] for a batch of one's own.
fn without_batch() -> String {
    QUICK.replace(" --batch 8 --nbs 8", "")
}

fn table_of(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.trim_start().starts_with("all ")).collect()
}

#[test]
fn a_run_leaves_its_files_and_val_prints_its_numbers_again() {
    let user = User::new();
    user.data();
    let trained = user.types(&format!("{QUICK} --epochs 2 --save-period 1")).succeeded();
    let run = user.path().join("runs/train/exp");
    for file in [
        "weights/best.pt",
        "weights/last.pt",
        "weights/epoch1.pt",
        "results.csv",
        "results.svg",
        "labels.svg",
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
    for word in ["best.pt", "results.csv", "results.svg"] {
        assert!(trained.stdout.contains(word), "{word} is not named in:\n{}", trained.stdout);
    }
    let rows = std::fs::read_to_string(run.join("results.csv")).unwrap();
    assert_eq!(rows.lines().count(), 3, "a header and two epochs:\n{rows}");

    let validated = user
        .types("val --data squares/squares.yaml --weights runs/train/exp/weights/best.pt --imgsz 64 --batch 16 --device cpu")
        .succeeded();
    assert!(!table_of(&trained.stdout).is_empty(), "{}", trained.stdout);
    assert_eq!(table_of(&trained.stdout), table_of(&validated.stdout));

    user.types(&format!("{QUICK} --epochs 1")).succeeded();
    assert!(
        user.path().join("runs/train/exp2/weights/best.pt").is_file(),
        "the second run has a folder of its own"
    );
}

#[test]
fn the_built_in_data_set_trains_and_is_not_made_again() {
    let user = User::new();
    let words = "train --data shapes --epochs 1 --imgsz 64 --device cpu";
    user.types(words).succeeded();
    let second = user.types(words).succeeded();
    assert!(!second.stderr.contains("generated the data set"), "{}", second.stderr);
    assert!(user.path().join("runs/train/exp2/weights/best.pt").is_file());
}

#[test]
fn ctrl_c_saves_and_resume_goes_on() {
    let user = User::new();
    user.data();
    let running = user.starts(&format!("{QUICK} --epochs 200"));
    let results = user.path().join("runs/train/exp/results.csv");
    until("a second epoch", || {
        std::fs::read_to_string(&results).ok().filter(|text| text.lines().count() >= 3)
    });
    running.signal(2);
    let answer = running.waits();
    assert_eq!(answer.code, Some(130), "{}", answer.stderr);
    assert!(answer.stderr.contains("yolo train --resume"), "{}", answer.stderr);

    // The plan is shortened so that the continuation ends soon; every other option is the first one.
    let plan = user.path().join("runs/train/exp/plan.json");
    let text = std::fs::read_to_string(&plan).unwrap();
    let rows = std::fs::read_to_string(&results).unwrap().lines().count() - 1;
    assert!(text.contains("\"epochs\": 200"), "{text}");
    std::fs::write(&plan, text.replace("\"epochs\": 200", &format!("\"epochs\": {}", rows + 2))).unwrap();
    user.types("train --resume runs/train/exp/weights/last.pt").succeeded();
    let epochs: Vec<String> = std::fs::read_to_string(&results)
        .unwrap()
        .lines()
        .skip(1)
        .map(|line| line.split(',').next().unwrap().trim().to_owned())
        .collect();
    let expected: Vec<String> = (0..rows + 2).map(|epoch| epoch.to_string()).collect();
    assert_eq!(epochs, expected, "every epoch has one row");

    user.types("train --resume runs/train/exp/weights/last.pt")
        .refused(1, &["is finished, so there is nothing to resume", "--weights"]);
}

#[test]
fn ctrl_c_ends_a_validation_as_interrupted() {
    let user = User::new();
    user.data();
    user.types(&format!("{QUICK} --epochs 1")).succeeded();
    let running = user.starts(
        "val --data squares/squares.yaml --weights runs/train/exp/weights/best.pt --imgsz 64 --batch 1 --device cpu --task study",
    );
    let study = user.path().join("runs/val/exp/study_squares_best.txt");
    until("the first size of the study", || {
        std::fs::read_to_string(&study).ok().filter(|text| !text.is_empty())
    });
    running.signal(2);
    let answer = running.waits();
    assert_eq!(answer.code, Some(130), "{}", answer.stderr);
}

#[test]
fn a_run_that_was_killed_while_it_finished_resumes_and_finishes() {
    let user = User::new();
    user.data();
    user.types(&format!("{QUICK} --epochs 2 --save-period 1")).succeeded();
    let run = user.path().join("runs/train/exp");
    let last = run.join("weights/last.pt");
    let finished = read(&last).unwrap().tensors;
    // Until the very end of the run, last.pt is what epoch1.pt is.
    std::fs::copy(run.join("weights/epoch1.pt"), &last).unwrap();
    let answer = user.types("train --resume runs/train/exp/weights/last.pt").succeeded();
    assert!(answer.stdout.contains("best.pt"), "{}", answer.stdout);
    assert!(read(&last).unwrap().tensors == finished, "other weights than before the kill");
    assert_eq!(std::fs::read_to_string(run.join("results.csv")).unwrap().lines().count(), 3);
}

/// The run is cut in the middle of an epoch and of a nominal batch: the gradients that were added
/// up until then are part of its state.
#[test]
fn an_interrupted_run_ends_with_the_weights_of_one_that_was_not() {
    for ranks in ["", " --nproc-per-node 2"] {
        let user = User::new();
        user.data();
        let words = format!("{}{ranks} --batch 2 --nbs 128 --epochs 3", without_batch());
        user.types(&format!("{words} --name whole")).succeeded();
        let running = user.starts(&format!("{words} --name cut"));
        let runs = user.path().join("runs/train");
        until("the end of the first epoch", || {
            let rows = std::fs::read_to_string(runs.join("cut/results.csv")).ok()?;
            (rows.lines().count() >= 2).then_some(())
        });
        running.signal(2);
        assert_eq!(running.waits().code, Some(130));
        let cut = read(&runs.join("cut/weights/last.pt")).unwrap();
        assert!(
            cut.root.get("batches_done").and_then(Value::as_i64).unwrap() > 0,
            "in the middle of an epoch"
        );
        assert!(cut.root.get("gradients").and_then(Value::as_entries).is_some(), "and of a step");

        // Without a name the newest run is continued.
        let answer = user.types("train --resume").succeeded();
        assert!(answer.stderr.contains("cut/weights/last.pt"), "{}", answer.stderr);
        let weights = |name: &str| read(&runs.join(name).join("weights/last.pt")).unwrap().tensors;
        assert!(weights("whole") == weights("cut"), "other weights with `{ranks}`");
        // The losses of the interrupted epoch are means over all its steps too.
        let results = |name: &str| std::fs::read_to_string(runs.join(name).join("results.csv")).unwrap();
        assert_eq!(results("cut"), results("whole"), "other results with `{ranks}`");
    }
}

#[test]
fn anchors_of_the_hyperparameters_replace_those_of_the_weights() {
    let user = User::new();
    user.data();
    user.types(&format!("{QUICK} --epochs 1 --noplots")).succeeded();
    let first = user.path().join("runs/train/exp");
    let hyp = std::fs::read_to_string(first.join("hyp.yaml")).unwrap();
    std::fs::write(user.path().join("hyp.yaml"), format!("{hyp}\nanchors: 4\n")).unwrap();
    let fine_tuning = QUICK.replace("--cfg yolov5n --weights=", "--weights runs/train/exp/weights/best.pt");
    user.types(&format!("{fine_tuning} --epochs 1 --noplots --hyp hyp.yaml")).succeeded();
    let anchors = |run: &str| {
        let weights = read(&user.path().join("runs/train").join(run).join("weights/best.pt")).unwrap();
        weights.tensors["model.24.anchors"].shape.clone()
    };
    assert_eq!(anchors("exp"), [3, 3, 2]);
    assert_eq!(anchors("exp2"), [3, 4, 2]);
}

#[test]
fn two_ranks_train_and_leave_no_process() {
    let user = User::new();
    user.data();
    let (running, ranks) = user.starts_two_ranks(&format!("{QUICK} --epochs 3"), &[]);
    running.waits().succeeded();
    assert!(user.path().join("runs/train/exp/weights/best.pt").is_file());
    assert!(ranks.into_iter().all(|pid| !lives(pid)));
}

#[test]
fn a_killed_rank_is_named_and_takes_the_group_with_it() {
    let user = User::new();
    user.data();
    let (running, ranks) = user.starts_two_ranks(&format!("{QUICK} --epochs 500"), &[]);
    send(ranks[1], 9);
    running.waits().refused(1, &["rank 1 of 2", "signal 9 (SIGKILL)", "training epoch", "--resume"]);
    assert!(ranks.into_iter().all(|pid| !lives(pid)));
}

#[test]
fn a_stopped_rank_is_noticed_and_named() {
    let user = User::new();
    user.data();
    let shortened = [("YOLO_SILENCE_SECONDS", "2")];
    let (running, ranks) = user.starts_two_ranks(&format!("{QUICK} --epochs 500"), &shortened);
    send(ranks[1], 19);
    running.waits().refused(1, &["rank 1 of 2", "no heartbeat for 2 s", "state T", "--resume"]);
    assert!(ranks.into_iter().all(|pid| !lives(pid)));
}

#[test]
fn a_rank_that_goes_on_in_time_is_let_go_on() {
    let user = User::new();
    user.data();
    let shortened = [("YOLO_SILENCE_SECONDS", "8")];
    let (running, ranks) = user.starts_two_ranks(&format!("{QUICK} --epochs 12"), &shortened);
    send(ranks[1], 19);
    std::thread::sleep(std::time::Duration::from_secs(2));
    send(ranks[1], 18);
    running.waits().succeeded();
}

#[test]
fn a_killed_supervisor_leaves_no_rank() {
    let user = User::new();
    user.data();
    let (running, ranks) = user.starts_two_ranks(&format!("{QUICK} --epochs 500"), &[]);
    running.signal(9);
    running.waits();
    until("the end of all ranks", || ranks.iter().all(|&pid| !lives(pid)).then_some(()));
}

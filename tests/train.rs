//! `yolo train` as a user runs it: the files of a run, interruption and resumption, and failures of
//! ranks.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use torch_checkpoint::{Value, read};
use user::{User, is_alive, send_signal, wait_for};

/// A run of a few seconds: tiny images, one rank, a small batch.
const QUICK: &str = "train --data squares/squares.yaml --cfg yolov5n --weights= --imgsz 64 --batch 8 --nbs 8 --device cpu --workers 1";

/// [`QUICK`] without its batch sizes.
fn without_batch() -> String {
    QUICK.replace(" --batch 8 --nbs 8", "")
}

#[test]
fn a_run_writes_its_files() {
    let user = User::new();
    user.write_data_set();
    let trained = user.run(&format!("{QUICK} --epochs 2 --save-period 1")).succeeded();
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
        assert!(trained.stdout.contains(word), "{word} is not in:\n{}", trained.stdout);
    }
    let rows = std::fs::read_to_string(run.join("results.csv")).unwrap();
    assert_eq!(rows.lines().count(), 3, "a header and two epochs:\n{rows}");

    user.run(&format!("{QUICK} --epochs 1")).succeeded();
    assert!(user.path().join("runs/train/exp2/weights/best.pt").is_file(), "the second run has no folder");
}

#[test]
fn the_built_in_data_set_is_generated_once() {
    let user = User::new();
    let arguments = "train --data shapes --epochs 1 --imgsz 64 --device cpu";
    user.run(arguments).succeeded();
    let second = user.run(arguments).succeeded();
    assert!(!second.stderr.contains("generated the data set"), "{}", second.stderr);
    assert!(user.path().join("runs/train/exp2/weights/best.pt").is_file());
}

#[test]
fn ctrl_c_saves_the_run_and_resume_continues_it() {
    let user = User::new();
    user.write_data_set();
    let running = user.start(&format!("{QUICK} --epochs 200"));
    let results = user.path().join("runs/train/exp/results.csv");
    wait_for("a second epoch", || {
        std::fs::read_to_string(&results).ok().filter(|text| text.lines().count() >= 3)
    });
    running.signal(2);
    let output = running.wait();
    assert_eq!(output.code, Some(130), "{}", output.stderr);
    assert!(output.stderr.contains("yolo train --resume"), "{}", output.stderr);

    // Shorten the plan, so that the resumed run ends soon.
    let plan = user.path().join("runs/train/exp/plan.json");
    let text = std::fs::read_to_string(&plan).unwrap();
    let rows = std::fs::read_to_string(&results).unwrap().lines().count() - 1;
    assert!(text.contains("\"epochs\": 200"), "{text}");
    std::fs::write(&plan, text.replace("\"epochs\": 200", &format!("\"epochs\": {}", rows + 2))).unwrap();
    user.run("train --resume runs/train/exp/weights/last.pt").succeeded();
    let epochs: Vec<String> = std::fs::read_to_string(&results)
        .unwrap()
        .lines()
        .skip(1)
        .map(|line| line.split(',').next().unwrap().trim().to_owned())
        .collect();
    let expected: Vec<String> = (0..rows + 2).map(|epoch| epoch.to_string()).collect();
    assert_eq!(epochs, expected, "every epoch has one row");

    user.run("train --resume runs/train/exp/weights/last.pt")
        .failed_with(1, &["is finished, so there is nothing to resume", "--weights"]);
}

#[test]
fn a_run_that_was_killed_while_finishing_can_be_resumed() {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{QUICK} --epochs 2 --save-period 1")).succeeded();
    let run = user.path().join("runs/train/exp");
    let last = run.join("weights/last.pt");
    let finished = read(&last).unwrap().tensors;
    // Until a run finishes, its last.pt is equal to epoch1.pt.
    std::fs::copy(run.join("weights/epoch1.pt"), &last).unwrap();
    let output = user.run("train --resume runs/train/exp/weights/last.pt").succeeded();
    assert!(output.stdout.contains("best.pt"), "{}", output.stdout);
    assert!(read(&last).unwrap().tensors == finished, "the weights differ from those before the kill");
    assert_eq!(std::fs::read_to_string(run.join("results.csv")).unwrap().lines().count(), 3);
}

/// The run is interrupted in the middle of an epoch and of a nominal batch, so its state includes the
/// gradients accumulated so far.
#[test]
fn a_resumed_run_ends_with_the_weights_of_an_uninterrupted_one() {
    for ranks in ["", " --nproc-per-node 2"] {
        let user = User::new();
        user.write_data_set();
        let arguments = format!("{}{ranks} --batch 2 --nbs 128 --epochs 3", without_batch());
        user.run(&format!("{arguments} --name whole")).succeeded();
        let running = user.start(&format!("{arguments} --name cut"));
        let runs = user.path().join("runs/train");
        wait_for("the end of the first epoch", || {
            let rows = std::fs::read_to_string(runs.join("cut/results.csv")).ok()?;
            (rows.lines().count() >= 2).then_some(())
        });
        running.signal(2);
        assert_eq!(running.wait().code, Some(130));
        let cut = read(&runs.join("cut/weights/last.pt")).unwrap();
        assert!(
            cut.root.get("batches_done").and_then(Value::as_i64).unwrap() > 0,
            "not interrupted in the middle of an epoch"
        );
        assert!(cut.root.get("gradients").and_then(Value::as_entries).is_some(), "no accumulated gradients");

        // Without a path, the newest run is resumed.
        let output = user.run("train --resume").succeeded();
        assert!(output.stderr.contains("cut/weights/last.pt"), "{}", output.stderr);
        let weights = |name: &str| read(&runs.join(name).join("weights/last.pt")).unwrap().tensors;
        assert!(weights("whole") == weights("cut"), "the weights differ with `{ranks}`");
        // The losses of the interrupted epoch are also means over all of its steps.
        let results = |name: &str| std::fs::read_to_string(runs.join(name).join("results.csv")).unwrap();
        assert_eq!(results("cut"), results("whole"), "the results differ with `{ranks}`");
    }
}

#[test]
fn anchors_of_the_hyperparameters_replace_those_of_the_weights() {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{QUICK} --epochs 1 --noplots")).succeeded();
    let first = user.path().join("runs/train/exp");
    let hyp = std::fs::read_to_string(first.join("hyp.yaml")).unwrap();
    std::fs::write(user.path().join("hyp.yaml"), format!("{hyp}\nanchors: 4\n")).unwrap();
    let fine_tuning = QUICK.replace("--cfg yolov5n --weights=", "--weights runs/train/exp/weights/best.pt");
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
    let (running, ranks) = user.start_two_ranks(&format!("{QUICK} --epochs 3"), &[]);
    running.wait().succeeded();
    assert!(user.path().join("runs/train/exp/weights/best.pt").is_file());
    assert!(ranks.into_iter().all(|pid| !is_alive(pid)));
}

#[test]
fn a_killed_rank_is_named_and_the_others_are_stopped() {
    let user = User::new();
    user.write_data_set();
    let (running, ranks) = user.start_two_ranks(&format!("{QUICK} --epochs 500"), &[]);
    send_signal(ranks[1], 9);
    running.wait().failed_with(1, &["rank 1 of 2", "signal 9 (SIGKILL)", "training epoch", "--resume"]);
    assert!(ranks.into_iter().all(|pid| !is_alive(pid)));
}

#[test]
fn a_hanging_rank_is_detected_and_named() {
    let user = User::new();
    user.write_data_set();
    let shortened = [("YOLO_SILENCE_SECONDS", "2")];
    let (running, ranks) = user.start_two_ranks(&format!("{QUICK} --epochs 500"), &shortened);
    send_signal(ranks[1], 19);
    running.wait().failed_with(1, &["rank 1 of 2", "no heartbeat for 2 s", "state T", "--resume"]);
    assert!(ranks.into_iter().all(|pid| !is_alive(pid)));
}

#[test]
fn a_rank_that_continues_before_the_timeout_is_not_stopped() {
    let user = User::new();
    user.write_data_set();
    let shortened = [("YOLO_SILENCE_SECONDS", "8")];
    let (running, ranks) = user.start_two_ranks(&format!("{QUICK} --epochs 12"), &shortened);
    send_signal(ranks[1], 19);
    std::thread::sleep(std::time::Duration::from_secs(2));
    send_signal(ranks[1], 18);
    running.wait().succeeded();
}

#[test]
fn no_rank_outlives_a_killed_supervisor() {
    let user = User::new();
    user.write_data_set();
    let (running, ranks) = user.start_two_ranks(&format!("{QUICK} --epochs 500"), &[]);
    running.signal(9);
    running.wait();
    wait_for("the end of all ranks", || ranks.iter().all(|&pid| !is_alive(pid)).then_some(()));
}

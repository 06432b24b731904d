//! Runs of `yolo train` that are interrupted or killed at a chosen moment: while an epoch is trained,
//! while a finished run validates `best.pt`, and while checkpoints are written. Nothing may be lost, and
//! the resumed run must end as one that was never interrupted.

// Ranks run on Linux, and in WSL.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/steered_trainer.rs"]
mod steered_trainer;
#[path = "support/user.rs"]
mod user;

use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use steered_trainer::{Act, Moment, SAVED, interrupt, interrupt_saying};
use torch_checkpoint::{Value, read};
use user::{SIGINT, SIGKILL, TRAIN, User, wait_for};

/// Adds validation images, so that a validation takes seconds.
fn with_a_long_validation(user: &User) {
    user.write_data_set();
    let root = user.path().join("squares");
    for index in 8..400 {
        let (image, label) = user::square(index, true);
        std::fs::write(root.join(format!("images/val/{index:03}.bmp")), image).unwrap();
        std::fs::write(root.join(format!("labels/val/{index:03}.txt")), label).unwrap();
    }
}

fn results(user: &User, run: &str) -> String {
    std::fs::read_to_string(user.path().join("runs/train").join(run).join("results.csv")).unwrap()
}

/// Fails unless both runs have the same results and the same weights.
#[track_caller]
fn assert_same_run(user: &User, whole: &str, cut: &str) {
    assert_eq!(results(user, cut), results(user, whole));
    for file in ["last.pt", "best.pt"] {
        let tensors = |run: &str| {
            read(&user.path().join("runs/train").join(run).join("weights").join(file)).unwrap().tensors
        };
        assert!(tensors(whole) == tensors(cut), "{file} differs");
    }
}

#[test]
fn ctrl_c_saves_the_run_and_resume_continues_it() {
    let user = User::new();
    user.write_data_set();
    let running = user.start(&format!("{TRAIN} --epochs 200"));
    let table = user.path().join("runs/train/exp/results.csv");
    wait_for("a second epoch", || {
        std::fs::read_to_string(&table).ok().filter(|text| text.lines().count() >= 3)
    });
    running.signal(SIGINT);
    let output = running.wait();
    assert_eq!(output.code, Some(130), "{}", output.stderr);
    assert!(output.stderr.contains("yolo train --resume"), "{}", output.stderr);

    // Shorten the plan, so that the resumed run ends soon.
    let plan = user.path().join("runs/train/exp/plan.json");
    let text = std::fs::read_to_string(&plan).unwrap();
    let rows = std::fs::read_to_string(&table).unwrap().lines().count() - 1;
    assert!(text.contains("\"epochs\": 200"), "{text}");
    std::fs::write(&plan, text.replace("\"epochs\": 200", &format!("\"epochs\": {}", rows + 2))).unwrap();
    user.run("train --resume runs/train/exp/weights/last.pt").succeeded();
    let epochs: Vec<String> = std::fs::read_to_string(&table)
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

/// The run is interrupted in the middle of an epoch and of a nominal batch, so its state includes the
/// gradients accumulated so far.
#[test]
fn a_resumed_run_ends_with_the_weights_of_an_uninterrupted_one() {
    for options in ["", " --nproc-per-node 2", " --nproc-per-node 2 --image-weights", " --precision bf16"] {
        let user = User::new();
        user.write_data_set();
        let arguments = format!("{TRAIN}{options} --batch 2 --nbs 128 --epochs 3");
        user.run(&format!("{arguments} --name whole")).succeeded();
        let at = Moment::when("training epoch 2 of 3");
        interrupt_saying(&user, &format!("{arguments} --name cut"), Act::Interrupt, at, SAVED);
        let cut = read(&user.path().join("runs/train/cut/weights/last.pt")).unwrap();
        assert!(
            cut.root.get("batches_done").and_then(Value::as_i64).unwrap() > 0,
            "not interrupted in the middle of an epoch"
        );
        assert!(cut.root.get("gradients").and_then(Value::as_entries).is_some(), "no accumulated gradients");

        // Without a path, the newest run is resumed.
        let output = user.run("train --resume").succeeded();
        assert!(output.stderr.contains("cut/weights/last.pt"), "{}", output.stderr);
        // The losses of the interrupted epoch are also means over all of its steps.
        assert_same_run(&user, "whole", "cut");
    }
}

/// An epoch then has one batch instead of eight.
#[test]
fn a_data_set_that_has_changed_is_named_and_the_run_goes_on() {
    let user = User::new();
    user.write_data_set();
    let arguments = format!("{TRAIN} --batch 2 --nbs 128 --epochs 3 --noplots --name cut");
    interrupt_saying(&user, &arguments, Act::Interrupt, Moment::when("training epoch 2 of 3"), SAVED);
    let label = user.path().join("squares/labels/val/00.txt");
    std::fs::write(&label, "0 0.5 0.5 0.25 0.25\n").unwrap();
    for index in 2..16 {
        std::fs::remove_file(user.path().join(format!("squares/images/train/{index:02}.bmp"))).unwrap();
    }
    let resumed = user.run("train --resume runs/train/cut").succeeded();
    for said in [
        "warning: the data set has changed since the run was saved: the train split has 2 images with 2 objects now, and \
         had 16 images with 16 objects",
        "the val split has as many images as before, but other ones or other labels",
    ] {
        assert!(resumed.stderr.contains(said), "{}", resumed.stderr);
    }
    let table = std::fs::read_to_string(user.path().join("runs/train/cut/results.csv")).unwrap();
    assert_eq!(table.lines().count(), 4, "{table}");
}

/// The images of the second epoch depend on the validation before it, which the resumed run does not repeat.
#[test]
fn image_weights_continue_with_the_validation_that_the_checkpoint_has() {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{TRAIN} --noplots --image-weights --epochs 2 --save-period 1")).succeeded();
    let weights = user.path().join("runs/train/exp/weights");
    let last = weights.join("last.pt");
    let finished = read(&last).unwrap().tensors;
    let mut saved = read(&weights.join("epoch0.pt")).unwrap().root;
    let mut resumed = |average_precisions: Option<[f64; 2]>| {
        let Value::Dict(fields) = &mut saved else { panic!("a checkpoint is a dictionary") };
        let (_, of_classes) =
            fields.iter_mut().find(|(name, _)| name.as_str() == Some("average_precisions")).unwrap();
        assert_eq!(of_classes.as_slice().unwrap().len(), 2, "one number per class");
        if let Some(others) = average_precisions {
            *of_classes = Value::List(others.map(Value::Float).to_vec());
        }
        torch_checkpoint::write_pt(&last, &saved).unwrap();
        user.run("train --resume runs/train/exp").succeeded();
        read(&last).unwrap().tensors
    };
    assert!(resumed(None) == finished, "the resumed run draws other images");
    // Were red found without an error, only images with blue would be drawn.
    assert!(resumed(Some([1.0, 0.0])) != finished, "the last validation has no effect");
}

#[test]
fn ctrl_c_while_the_finished_run_validates_best_pt_loses_nothing() {
    let user = User::new();
    with_a_long_validation(&user);
    let arguments = format!("{TRAIN} --noplots --epochs 1 --name exp");
    let output = interrupt(&user, &arguments, Act::Interrupt, Moment::when("validating best.pt"), |output| {
        output.code == Some(0) && output.stderr.contains("best.pt was not validated")
    });
    assert!(output.stderr.contains("yolo val --weights"), "{}", output.stderr);
    let last = read(&user.path().join("runs/train/exp/weights/last.pt")).unwrap();
    assert!(last.root.get("optimizer").is_some_and(|value| *value == Value::None));
}

#[test]
fn a_run_that_was_killed_while_finishing_can_be_resumed() {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{TRAIN} --epochs 2 --save-period 1")).succeeded();
    let run = user.path().join("runs/train/exp");
    let last = run.join("weights/last.pt");
    let finished = read(&last).unwrap().tensors;
    // Until a run finishes, its last.pt is equal to epoch1.pt.
    std::fs::copy(run.join("weights/epoch1.pt"), &last).unwrap();
    let output = user.run("train --resume runs/train/exp/weights/last.pt").succeeded();
    assert!(output.stdout.contains("best.pt"), "{}", output.stdout);
    assert!(read(&last).unwrap().tensors == finished, "the weights differ from those before the kill");
    assert_eq!(results(&user, "exp").lines().count(), 3);
}

/// `best.pt` is written before `last.pt`; the kill comes as soon as a new `best.pt` is there. If
/// `last.pt` is faster, another run is started.
#[test]
fn a_run_that_is_killed_between_its_checkpoints_resumes_and_ends_the_same() {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{TRAIN} --noplots --epochs 6 --name whole")).succeeded();

    let between = (0..50).map(|attempt| format!("cut{attempt}")).find(|name| killed_between(&user, name));
    let cut = between.expect("all kills came after last.pt");
    user.run(&format!("train --resume runs/train/{cut}")).succeeded();
    assert_same_run(&user, "whole", &cut);
}

/// Kills a run when it writes its second `best.pt`. Returns whether it had not replaced `last.pt` yet.
fn killed_between(user: &User, name: &str) -> bool {
    let running = user.start(&format!("{TRAIN} --noplots --epochs 6 --name {name}"));
    let weights = user.path().join("runs/train").join(name).join("weights");
    let inode = |file: &str| std::fs::metadata(weights.join(file)).ok().map(|file| file.ino());
    wait_for("the first last.pt", || inode("last.pt"));
    let rank = wait_for("the rank", || running.ranks().first().copied());
    // Epochs that are not the best so far write only last.pt.
    let (first_best, mut last) = (inode("best.pt"), inode("last.pt"));
    let began = Instant::now();
    while inode("best.pt") == first_best {
        assert!(began.elapsed() < Duration::from_secs(180), "waited three minutes for a second best.pt");
        std::thread::sleep(Duration::from_millis(1));
        last = inode("last.pt");
    }
    user::send_signal(rank, SIGKILL);
    running.wait().failed_with(1, &["signal 9 (SIGKILL)", "--resume"]);
    inode("last.pt") == last
}

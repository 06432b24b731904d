//! Runs of `yolo train` that are interrupted or killed at a chosen moment: while an epoch is
//! validated, while a finished run validates `best.pt`, and while checkpoints are written. Nothing
//! may be lost, and the resumed run must end as one that was never interrupted.

// Ranks run on Linux, and in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use torch_checkpoint::read;
use user::{Running, User, wait_for};

const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;

/// A short run on tiny images, without plots.
const TRAIN: &str = "train --data squares/squares.yaml --cfg yolov5n --weights= --imgsz 64 --batch 8 --nbs 8 \
                     --device cpu --workers 1 --noplots";

/// A trainer that also writes its events to a file, so that a test can wait for one of them.
struct ObservedTrainer {
    program: PathBuf,
    events: PathBuf,
}

impl ObservedTrainer {
    fn new(user: &User) -> Self {
        let trainer = Path::new(env!("CARGO_BIN_EXE_yolo")).with_file_name("yolo-trainer");
        let (program, events) = (user.path().join("observed-trainer"), user.path().join("events"));
        // The events go through `tee`; `exec` lets the signals of the supervisor reach the trainer.
        let script = format!(
            "#!/usr/bin/env bash\nfd=$YOLO_EVENTS_FD\neval \"exec $fd> >(exec tee -a '{}' >&$fd)\"\nexec '{}' \"$@\"\n",
            events.display(),
            trainer.display()
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { program, events }
    }

    fn start(&self, user: &User, arguments: &str) -> Running {
        user.start_with(arguments, &[("YOLO_TRAINER", self.program.to_str().unwrap())])
    }

    /// Waits until the trainer reports that it is doing this.
    #[track_caller]
    fn wait_for(&self, doing: &str) {
        let phase = format!("\"doing\":\"{doing}\"");
        wait_for(doing, || std::fs::read_to_string(&self.events).ok().filter(|text| text.contains(&phase)));
    }
}

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
fn ctrl_c_during_the_validation_of_an_epoch_saves_the_run() {
    let user = User::new();
    with_a_long_validation(&user);
    user.run(&format!("{TRAIN} --epochs 2 --name whole")).succeeded();

    let trainer = ObservedTrainer::new(&user);
    let running = trainer.start(&user, &format!("{TRAIN} --epochs 2 --name cut"));
    trainer.wait_for("validating");
    running.signal(SIGINT);
    let output = running.wait();
    assert_eq!(output.code, Some(130), "{}", output.stderr);
    assert!(output.stderr.contains("interrupted; the run's state is saved"), "{}", output.stderr);
    assert_eq!(results(&user, "cut").lines().count(), 1, "the epoch was not validated yet");

    user.run("train --resume runs/train/cut").succeeded();
    assert_same_run(&user, "whole", "cut");
}

#[test]
fn ctrl_c_while_the_finished_run_validates_best_pt_loses_nothing() {
    let user = User::new();
    with_a_long_validation(&user);
    let trainer = ObservedTrainer::new(&user);
    let running = trainer.start(&user, &format!("{TRAIN} --epochs 1"));
    trainer.wait_for("validating best.pt");
    running.signal(SIGINT);
    let output = running.wait().succeeded();
    assert!(output.stderr.contains("best.pt was not validated"), "{}", output.stderr);
    assert!(output.stderr.contains("yolo val --weights"), "{}", output.stderr);
    let last = read(&user.path().join("runs/train/exp/weights/last.pt")).unwrap();
    assert!(last.root.get("optimizer").is_some_and(|value| *value == torch_checkpoint::Value::None));
}

/// `best.pt` is written before `last.pt`; the kill comes as soon as a new `best.pt` is there.
#[test]
fn a_run_that_is_killed_between_its_checkpoints_resumes_and_ends_the_same() {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{TRAIN} --epochs 3 --name whole")).succeeded();

    let running = user.start(&format!("{TRAIN} --epochs 3 --name cut"));
    let weights = user.path().join("runs/train/cut/weights");
    let inode = |name: &str| std::fs::metadata(weights.join(name)).ok().map(|file| file.ino());
    wait_for("the first last.pt", || inode("last.pt"));
    let rank = wait_for("the rank", || running.ranks().first().copied());
    let (first_best, first_last) = (inode("best.pt"), inode("last.pt"));
    while inode("best.pt") == first_best && inode("last.pt") == first_last {
        std::hint::spin_loop();
    }
    user::send_signal(rank, SIGKILL);
    running.wait().failed_with(1, &["signal 9 (SIGKILL)", "--resume"]);

    user.run("train --resume runs/train/cut").succeeded();
    assert_same_run(&user, "whole", "cut");
}

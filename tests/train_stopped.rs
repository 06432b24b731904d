//! Ctrl-C in each phase of a run, on one rank and on two: the run saves what there is to save, leaves with
//! status 130 and one line, and no rank is left waiting for another. The request reaches the rank when it
//! reports the phase.

// Ranks run on Linux, and in WSL. The state of a process is read from /proc.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/steered_trainer.rs"]
mod steered_trainer;
#[path = "support/user.rs"]
mod user;

use steered_trainer::{Act, Moment, SAVED, SteeredTrainer, interrupt_saying, run};
use user::{TRAIN, User};

/// Ctrl-C in a phase before the first step: there is nothing to save.
fn assert_nothing_to_save(user: &User, options: &str, act: Act, doing: &'static str) {
    let name = doing.replace(' ', "-");
    let arguments = format!("{TRAIN} --noplots --epochs 100 --name {name} {options}");
    interrupt_saying(user, &arguments, act, Moment::when(doing), "interrupted before the first checkpoint");
    assert!(!user.path().join("runs/train").join(name).join("weights/last.pt").exists(), "{doing}");
}

/// Ctrl-C in a phase of which the state is saved: the resumed run ends as one that was not interrupted.
fn assert_resumes(user: &User, options: &str, at: Moment) {
    let (doing, name) = (at.doing, at.doing.replace(' ', "-"));
    let arguments = format!("{TRAIN} --noplots --epochs 2 {options}");
    if !user.path().join("runs/train/whole").exists() {
        run(user, &format!("{arguments} --name whole"), 1).succeeded();
    }
    interrupt_saying(user, &format!("{arguments} --name {name}"), Act::Interrupt, at, SAVED);
    run(user, &format!("train --resume runs/train/{name}"), 1).succeeded();
    for file in ["results.csv", "weights/last.pt", "weights/best.pt"] {
        let of = |run: &str| std::fs::read(user.path().join("runs/train").join(run).join(file)).unwrap();
        assert!(of("whole") == of(&name), "{doing}: {file} differs");
    }
}

#[test]
fn a_rank_that_prepares_ends_at_once() {
    let user = User::new();
    user.write_data_set();
    for doing in ["reading labels", "building the model", "fitting the anchors"] {
        assert_nothing_to_save(&user, "", Act::Interrupt, doing);
    }
}

#[test]
fn ranks_that_wait_for_each_other_end_at_once() {
    let user = User::new();
    user.write_data_set();
    let two = "--nproc-per-node 2";
    assert_nothing_to_save(&user, two, Act::InterruptWithoutRank1, "waiting for the other ranks");
    for doing in ["reading labels", "fitting the anchors", "sharing the first weights"] {
        assert_nothing_to_save(&user, two, Act::Interrupt, doing);
    }
}

#[test]
fn a_rank_saves_in_every_phase_of_an_epoch() {
    let user = User::new();
    user.write_data_set();
    for doing in ["training epoch 1", "validating", "writing the checkpoint"] {
        assert_resumes(&user, "", Moment::when(doing));
    }
}

#[test]
fn two_ranks_save_in_every_phase_of_an_epoch() {
    let user = User::new();
    user.write_data_set();
    for at in [Moment::when("training epoch 1"), Moment { rank: 1, ..Moment::when("validating") }] {
        assert_resumes(&user, "--nproc-per-node 2", at);
    }
}

#[test]
fn val_and_bench_end_with_one_line() {
    let user = User::new();
    user.write_data_set();
    // Validation takes a while, so that it is not over before the rank stands still.
    for index in 8..200 {
        let (image, label) = user::square(index, true);
        std::fs::write(user.path().join(format!("squares/images/val/{index:03}.bmp")), image).unwrap();
        std::fs::write(user.path().join(format!("squares/labels/val/{index:03}.txt")), label).unwrap();
    }
    run(&user, &format!("{TRAIN} --noplots --epochs 1"), 1).succeeded();
    let val = "val --data squares/squares.yaml --weights runs/train/exp/weights/best.pt --imgsz 64 --batch 8 --device cpu";
    let bench = "bench --data squares/squares.yaml --cfg yolov5n --weights= --imgsz 64 --batch 8 --device cpu \
                 --workers 1";
    for (command, doing) in [
        (val, "reading labels"),
        (val, "reading the weights"),
        (bench, "building the model"),
        (bench, "measuring training"),
    ] {
        let output = interrupt_saying(&user, command, Act::Interrupt, Moment::when(doing), "interrupted");
        assert_eq!(output.stdout, "", "{command}, {doing}");
        assert_eq!(output.stderr.lines().last(), Some("interrupted"), "{doing}: {}", output.stderr);
    }
}

/// The checkpoint may lie on the machine of rank 0 only.
#[test]
fn rank_0_sends_the_checkpoint_to_the_others() {
    let user = User::new();
    user.write_data_set();
    // Gradients of a started nominal batch are sent as well.
    let options = "--nproc-per-node 2 --batch 2 --nbs 128";
    let arguments = format!("{TRAIN} --noplots --epochs 2 {options}");
    run(&user, &format!("{arguments} --name whole"), 1).succeeded();
    let at = Moment { milliseconds: 200, ..Moment::when("training epoch 1") };
    interrupt_saying(&user, &format!("{arguments} --name cut"), Act::Interrupt, at, SAVED);
    let trainer = SteeredTrainer::new(&user);
    let resume = "train --resume runs/train/cut";
    trainer.run(&user, resume, 1, Act::HideCheckpoint, Moment::when("nothing")).succeeded();
    let plan = std::fs::read_to_string(user.path().join("plan-of-rank1.json")).unwrap();
    assert!(plan.contains("weights/not-here.pt"), "rank 1 had the checkpoint");
    let results = |run: &str| -> Vec<f64> {
        let file = user.path().join("runs/train").join(run).join("results.csv");
        let rows = std::fs::read_to_string(file).unwrap();
        rows.lines().skip(1).flat_map(|row| row.split(',')).map(|cell| cell.trim().parse().unwrap()).collect()
    };
    let (cut, whole) = (results("cut"), results("whole"));
    assert_eq!(cut.len(), whole.len());
    // The ranks' gradients are saved as their sum, which is rounded in another order than in a run that was
    // never interrupted.
    let close = |(cut, whole): (&f64, &f64)| (cut - whole).abs() <= 1e-3 * whole.abs();
    assert!(cut.iter().zip(&whole).all(close), "{cut:?}\n{whole:?}");
}

/// The run continues on another number of ranks with the same batch, and says so.
#[test]
fn a_run_continues_on_another_number_of_ranks() {
    let user = User::new();
    user.write_data_set();
    let at = Moment { count: 2, ..Moment::when("training epoch") };
    interrupt_saying(&user, &format!("{TRAIN} --noplots --epochs 3 --name exp"), Act::Interrupt, at, SAVED);
    user.run("train --resume runs/train/exp --nproc-per-node 3")
        .failed_with(2, &["its batch of 8, which stays the same, cannot be divided", "resume it on 2 ranks"]);
    let output = user.run("train --resume runs/train/exp --device cpu --nproc-per-node 2").succeeded();
    let said = "resuming on 2 ranks (cpu,cpu) instead of 1 rank (cpu): the batch over all ranks stays 8, 4 \
                images on each";
    assert!(output.stderr.contains(said), "{}", output.stderr);
    let rows = std::fs::read_to_string(user.path().join("runs/train/exp/results.csv")).unwrap();
    assert_eq!(rows.lines().count(), 4, "{rows}");
    let logs = user.path().join("runs/train/exp/logs");
    assert!(logs.join("rank1.log").exists());
    // A finished run: one message, and no warning before it.
    let finished = user.run("train --resume runs/train/exp");
    assert!(!finished.stderr.contains("warning"), "{}", finished.stderr);
    finished.failed_with(1, &["is finished, so there is nothing to resume"]);
}

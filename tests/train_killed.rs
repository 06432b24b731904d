//! Runs of `yolo train` that are killed with SIGKILL at many moments, also while they save, validate and
//! finish, and resumed each time. The files that they leave must be those of a run that was never killed,
//! byte for byte. The moments are drawn from fixed seeds.

// Ranks run on Linux, and in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/steered_trainer.rs"]
mod steered_trainer;
#[path = "support/user.rs"]
mod user;

use std::path::Path;

use steered_trainer::{Act, Moment, SteeredTrainer, run};
use user::{TRAIN, User};

/// Runs of these tests. Without plots, whose files a kill may leave behind unfinished.
const OPTIONS: &str = "--noplots --save-period 1 --epochs 2";

/// Numbers that only depend on the seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        // A linear congruential generator; its upper bits are random enough to spread kills.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Trains, kills the run at each of these moments and resumes it, then lets it end, and compares its
/// files with those of the run `whole`. Returns how many kills hit.
fn assert_ends_as_if_never_killed(
    user: &User,
    name: &str,
    options: &str,
    threads: usize,
    kills: &[Moment],
) -> usize {
    const COMPLETE: &str = "is finished, so there is nothing to resume";
    let trainer = SteeredTrainer::new(user);
    let mut arguments = format!("{TRAIN} {OPTIONS} {options} --name {name}");
    let mut died = 0;
    for &kill in kills {
        let output = trainer.run(user, &arguments, threads, Act::Kill, kill);
        if user.path().join("runs/train").join(name).join("plan.json").exists() {
            arguments = format!("train --resume runs/train/{name}");
        }
        if output.stderr.contains("signal 9 (SIGKILL)") {
            died += 1;
        } else if output.stderr.contains(COMPLETE) {
            // The kill before this one came when all files were complete.
            break;
        } else {
            // The moment did not come any more.
            output.succeeded();
            break;
        }
    }
    let last = run(user, &arguments, threads);
    assert!(last.code == Some(0) || last.stderr.contains(COMPLETE), "{}", last.stderr);
    assert_same_files(user, name);
    died
}

#[track_caller]
fn assert_same_files(user: &User, name: &str) {
    let runs = user.path().join("runs/train");
    let names = |folder: &Path| {
        let mut names: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let weights = names(&runs.join("whole/weights"));
    assert_eq!(names(&runs.join(name).join("weights")), weights, "files of {name}");
    // epoch1.pt holds the fp32 weights, their average and the optimizer of the last step.
    for file in ["best.pt", "epoch0.pt", "epoch1.pt", "last.pt"] {
        assert!(weights.iter().any(|name| name == file), "{weights:?}");
    }
    let files = weights.iter().map(|name| Path::new("weights").join(name)).chain(["results.csv".into()]);
    for file in files {
        let of = |run: &str| std::fs::read(runs.join(run).join(&file)).unwrap();
        assert!(of("whole") == of(name), "{} of {name} differs", file.display());
    }
}

/// The run that is never killed.
fn whole(user: &User, options: &str, threads: usize) {
    run(user, &format!("{TRAIN} {OPTIONS} {options} --name whole"), threads).succeeded();
}

#[test]
fn a_run_that_is_killed_again_and_again_ends_as_if_it_never_was() {
    let user = User::new();
    user.write_data_set();
    whole(&user, "", 2);
    let mut died = 0;
    for seed in 0..2 {
        let mut draw = Draw(seed);
        let kills: Vec<Moment> = (0..5)
            .map(|_| Moment {
                rank: 0,
                // Every report counts.
                doing: "",
                count: 1 + draw.below(9),
                milliseconds: draw.below(60),
            })
            .collect();
        died += assert_ends_as_if_never_killed(&user, &format!("cut{seed}"), "", 2, &kills);
    }
    assert!(died >= 1, "no kill hit");
}

#[test]
fn a_run_that_is_killed_while_it_finishes_ends_as_if_it_never_was() {
    let user = User::new();
    user.write_data_set();
    whole(&user, "", 2);
    let mut draw = Draw(7);
    let mut kill = |doing, count| Moment { rank: 0, doing, count, milliseconds: draw.below(40) };
    // best.pt is stripped, then validated, and last.pt is stripped at the end.
    let kills = [
        kill("writing the checkpoint", 2),
        kill("stripping the checkpoints", 1),
        kill("validating best.pt", 1),
        kill("stripping the checkpoints", 2),
        kill("stripping the checkpoints", 2),
    ];
    let died = assert_ends_as_if_never_killed(&user, "cut", "", 2, &kills);
    assert!(died >= 1, "no kill hit");
}

#[test]
fn one_process_with_two_devices_that_is_killed_ends_as_if_it_never_was() {
    for mode in ["dp", "model"] {
        let user = User::new();
        user.write_data_set();
        let options = format!("--device cpu,cpu --parallel {mode} --nbs 16");
        whole(&user, &options, 1);
        let kill = |doing, count, milliseconds| Moment { rank: 0, doing, count, milliseconds };
        let kills = [
            kill("training epoch", 1, 40),
            kill("writing the checkpoint", 1, 10),
            kill("validating best.pt", 1, 5),
        ];
        let died = assert_ends_as_if_never_killed(&user, "cut", &options, 1, &kills);
        assert!(died >= 1, "no kill hit ({mode})");
    }
}

#[test]
fn two_ranks_of_which_one_is_killed_end_as_if_it_never_was() {
    let user = User::new();
    user.write_data_set();
    let options = "--nproc-per-node 2";
    whole(&user, options, 1);
    let mut draw = Draw(11);
    let kills: Vec<Moment> = (0..4)
        .map(|_| Moment {
            rank: draw.below(2),
            doing: "training epoch",
            count: 1 + draw.below(2),
            // A fast machine trains an epoch in less than 100 ms.
            milliseconds: draw.below(60),
        })
        .collect();
    let died = assert_ends_as_if_never_killed(&user, "cut", options, 1, &kills);
    assert!(died >= 1, "no kill hit");
}

#[test]
fn a_run_with_image_weights_and_quad_that_is_killed_ends_as_if_it_never_was() {
    let user = User::new();
    user.write_data_set();
    let options = "--image-weights --quad --batch 4";
    whole(&user, options, 2);
    let kills = [(1, 30), (2, 30)].map(|(count, milliseconds)| Moment {
        rank: 0,
        doing: "training epoch",
        count,
        milliseconds,
    });
    let died = assert_ends_as_if_never_killed(&user, "cut", options, 2, &kills);
    assert!(died >= 1, "no kill hit");
}

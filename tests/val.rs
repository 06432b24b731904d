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

/// Each rank trains on one image a step and validates every second batch of two; nominal batches are
/// accumulated over four steps.
#[test]
fn val_prints_the_metrics_that_two_ranks_printed() {
    let user = User::new();
    user.write_data_set();
    let trained = user.run(&format!("{TRAIN} --batch 2 --epochs 1 --nproc-per-node 2")).succeeded();
    let validated = user.run(&format!("{VAL} --batch 2")).succeeded();
    assert_eq!(trained.table(), validated.table());
    let pictures = |run: &str| {
        let names =
            (0..3).flat_map(|batch| ["labels", "pred"].map(|kind| format!("val_batch{batch}_{kind}.jpg")));
        let read = |name: String| std::fs::read(user.path().join(run).join(name)).unwrap();
        names.map(read).collect::<Vec<_>>()
    };
    assert!(pictures("runs/train/exp") == pictures("runs/val/exp"), "the pictures differ");
}

#[test]
fn several_ranks_write_what_one_writes() {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{TRAIN} --epochs 2")).succeeded();
    let options = "--batch 3 --conf-thres 0.0001 --save-txt --save-conf --save-json";
    let one = user.run(&format!("{VAL} {options} --name one")).succeeded();
    let files = |name: &str| {
        let run = user.path().join("runs/val").join(name);
        let mut files: Vec<_> = [run.clone(), run.join("labels")]
            .into_iter()
            .flat_map(|folder| std::fs::read_dir(folder).unwrap())
            .map(|entry| entry.unwrap().path())
            // These have the number of ranks and what it cost.
            .filter(|path| {
                let name = path.file_name().unwrap();
                path.is_file() && !["plan.json", "report.json", "report.html"].iter().any(|one| name == *one)
            })
            .map(|path| (path.strip_prefix(&run).unwrap().to_owned(), std::fs::read(&path).unwrap()))
            .collect();
        files.sort();
        files
    };
    let want = files("one");
    let labels = want.iter().filter(|(path, _)| path.starts_with("labels")).count();
    assert_eq!(labels, 8, "an image has no label file");
    assert!(want.iter().any(|(path, bytes)| path.ends_with("best_predictions.json") && bytes.len() > 1000));
    // With four ranks, one of them has no batch.
    for (name, devices) in [("two", "cpu,cpu"), ("four", "cpu,cpu,cpu,cpu")] {
        let several = user.run(&format!("{VAL} {options} --name {name} --device {devices}")).succeeded();
        assert_eq!(several.table(), one.table());
        assert_eq!(several.stdout.matches("all ").count(), one.stdout.matches("all ").count());
        let got = files(name);
        let names = |files: &[(std::path::PathBuf, Vec<u8>)]| {
            files.iter().map(|file| file.0.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&got), names(&want));
        for ((path, got), (_, want)) in got.iter().zip(&want) {
            assert!(got == want, "{} of {name} differs", path.display());
        }
    }
}

#[test]
fn ctrl_c_during_val_exits_as_interrupted() {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{TRAIN} --epochs 1")).succeeded();
    let running = user.start(&format!("{VAL} --batch 1 --task study --device cpu,cpu"));
    let study = user.path().join("runs/val/exp/study_squares_best.txt");
    wait_for("the first size of the study", || {
        std::fs::read_to_string(&study).ok().filter(|text| !text.is_empty())
    });
    running.signal(SIGINT);
    let output = running.wait();
    assert_eq!(output.code, Some(130), "{}", output.stderr);
}

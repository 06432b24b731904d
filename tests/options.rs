//! Every option of `yolo train` and `yolo val` does what it says: runs are compared with one that
//! differs in that option alone. Runs of one seed are the same to the last bit, so a difference is
//! the option's.

// Ranks run on Linux, and in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::path::Path;

use indexmap::IndexMap;
use torch_checkpoint::{TensorData, read};
use user::{Answer, User};

/// Two epochs of tiny images.
const TRAIN: &str = "train --data squares/squares.yaml --cfg yolov5n --weights= --imgsz 64 --batch 8 \
                     --nbs 8 --device cpu --workers 1 --epochs 2";
const VAL: &str = "val --data squares/squares.yaml --weights first/exp/weights/best.pt --imgsz 64 --batch 4 \
                   --device cpu";

fn weights(user: &User, name: &str) -> IndexMap<String, TensorData> {
    read(&user.path().join("runs/train").join(name).join("weights/last.pt")).unwrap().tensors
}

fn train(user: &User, name: &str, words: &str) -> Answer {
    user.types(&format!("{TRAIN} {words} --name {name}")).succeeded()
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn options_that_change_what_is_learned() {
    let user = User::new();
    user.data();
    train(&user, "plain", "");
    let plain = weights(&user, "plain");
    train(&user, "again", "");
    assert!(weights(&user, "again") == plain, "two runs of one seed are the same");
    for (name, words) in [
        ("adam", "--optimizer Adam"),
        ("adamw", "--optimizer AdamW"),
        ("smooth", "--label-smoothing 0.1"),
        ("rect", "--rect"),
        ("freeze", "--freeze 3"),
        ("list", "--freeze 1 7"),
        ("seed", "--seed 7"),
        ("hyp", "--hyp high"),
        ("nominal", "--nbs 4"),
    ] {
        train(&user, name, words);
        assert!(weights(&user, name) != plain, "{words} changed nothing");
    }
    // Half-way through two epochs the cosine is where the line is: it takes three to tell them apart.
    train(&user, "line", "--epochs 3");
    train(&user, "cosine", "--epochs 3 --cos-lr");
    assert!(weights(&user, "cosine") != weights(&user, "line"), "--cos-lr changed nothing");

    train(&user, "single", "--single-cls");
    let single = read(&user.path().join("runs/train/single/weights/last.pt")).unwrap();
    assert_eq!(single.names.unwrap(), ["item"]);

    train(&user, "two", "--nproc-per-node 2");
    train(&user, "sync", "--nproc-per-node 2 --sync-bn");
    assert!(weights(&user, "sync") != weights(&user, "two"), "--sync-bn changed nothing");
}

#[test]
fn options_that_change_only_what_is_kept() {
    let user = User::new();
    user.data();
    train(&user, "plain", "--save-period 1");
    let plain = weights(&user, "plain");
    let run = |name: &str| user.path().join("runs/train").join(name);
    assert_eq!(names_in(&run("plain").join("weights")), ["best.pt", "epoch0.pt", "epoch1.pt", "last.pt"]);
    for (name, words) in [
        ("ram", "--cache"),
        ("disk", "--cache disk"),
        ("again", "--cache disk"),
        ("bare", "--noplots --nosave"),
    ] {
        train(&user, name, words);
        assert!(weights(&user, name) == plain, "{words} changed what is learned");
    }
    let images = names_in(&user.path().join("squares/images/train"));
    assert_eq!(images.iter().filter(|name| name.ends_with("-linear.yolo-img")).count(), 16);
    let is_plot = |name: &String| name.ends_with(".svg") || name.ends_with(".jpg");
    assert!(names_in(&run("plain")).iter().any(is_plot));
    assert!(!names_in(&run("bare")).iter().any(is_plot), "{:?}", names_in(&run("bare")));

    train(&user, "late", "--noval");
    let rows = std::fs::read_to_string(run("late").join("results.csv")).unwrap();
    let losses: Vec<&str> = rows.lines().skip(1).map(|row| row.split(',').nth(8).unwrap().trim()).collect();
    assert!(losses[0] == "0" && losses[1] != "0", "validated after the last epoch only:\n{rows}");

    let stopped = train(&user, "patience", "--epochs 9 --patience 1 --noautoanchor");
    let rows = std::fs::read_to_string(run("patience").join("results.csv")).unwrap();
    assert!(rows.lines().count() < 10 && stopped.stderr.contains("stopped early"), "{}", stopped.stderr);
}

#[test]
fn options_that_do_not_exist_are_refused() {
    let user = User::new();
    user.data();
    for option in ["--image-weights", "--multi-scale", "--quad", "--evolve", "--bucket x"] {
        let answer = user.types(&format!("{TRAIN} {option}"));
        assert_eq!(answer.code, Some(2), "{option}: {}", answer.stderr);
    }
}

fn table(answer: &Answer) -> &str {
    answer.stdout.lines().find(|line| line.trim_start().starts_with("all ")).unwrap()
}

#[test]
fn options_of_val() {
    let user = User::new();
    user.data();
    let yaml = user.path().join("squares/squares.yaml");
    let text = std::fs::read_to_string(&yaml).unwrap();
    std::fs::write(&yaml, format!("{text}test: images/train\n")).unwrap();
    user.types(&format!("{TRAIN} --epochs 6 --project first")).succeeded();
    let val = |name: &str, words: &str| user.types(&format!("{VAL} {words} --name {name}")).succeeded();
    let folder = |name: &str| user.path().join("runs/val").join(name);
    let plain = val("plain", "");

    val("text", "--save-txt");
    let of_one = std::fs::read_to_string(folder("text").join("labels/00.txt")).unwrap();
    assert!(of_one.lines().all(|line| line.split(' ').count() == 5), "{of_one}");
    val("conf", "--save-txt --save-conf");
    let of_one = std::fs::read_to_string(folder("conf").join("labels/00.txt")).unwrap();
    assert!(
        of_one.lines().count() > 0 && of_one.lines().all(|line| line.split(' ').count() == 6),
        "{of_one}"
    );
    val("json", "--save-json");
    let found = std::fs::read_to_string(folder("json").join("best_predictions.json")).unwrap();
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    assert!(found.as_array().unwrap().iter().all(|one| one["bbox"].as_array().unwrap().len() == 4));
    // Labels that enter as detections of confidence 1 are all found.
    assert!(table(&val("hybrid", "--save-hybrid")).contains("0.995"));
    assert!(folder("hybrid").join("labels/00.txt").is_file());

    assert_ne!(table(&val("augment", "--augment")), table(&plain));
    assert_ne!(table(&val("few", "--max-det 1")), table(&plain));
    assert_ne!(table(&val("strict", "--conf-thres 0.9")), table(&plain));
    assert_ne!(table(&val("overlap", "--iou-thres 0.01")), table(&plain));
    assert!(table(&val("train", "--task train")).contains("16"));
    assert!(table(&val("test", "--task test")).contains("16"));
    // Speed is measured on square batches without padding: the same images and labels.
    let speed = val("speed", "--task speed");
    let counts = |answer: &Answer| -> Vec<String> {
        table(answer).split_whitespace().take(3).map(str::to_owned).collect()
    };
    assert_eq!(counts(&speed), counts(&plain));
    for option in ["--half", "--dnn"] {
        let answer = val(&option[2..], option);
        assert!(answer.stderr.contains(&format!("warning: {option}")), "{}", answer.stderr);
        assert_eq!(table(&answer), table(&plain));
    }
    // With few classes the table has a row for each anyway.
    assert_eq!(table(&val("verbose", "--verbose")), table(&plain));
    assert_eq!(table(&val("workers", "--workers 2")), table(&plain));
    user.types(&format!("{VAL} --single-cls")).refused(1, &["2 classes", "--single-cls"]);
    user.types(&format!("{VAL} --task everything")).refused(1, &["everything", "speed"]);
}

#[test]
fn a_study_has_a_line_for_every_image_size() {
    let user = User::new();
    user.data();
    user.types(&format!("{TRAIN} --epochs 1 --project first")).succeeded();
    // One image, since the largest size is 1536 pixels.
    let squares = user.path().join("squares");
    for (kind, file) in [("images", "00.bmp"), ("labels", "00.txt")] {
        std::fs::create_dir_all(squares.join(kind).join("one")).unwrap();
        std::fs::copy(squares.join(kind).join("val").join(file), squares.join(kind).join("one").join(file))
            .unwrap();
    }
    let yaml = "path: .\ntrain: images/train\nval: images/one\nnames: [red, blue]\n";
    std::fs::write(squares.join("one.yaml"), yaml).unwrap();
    let words = VAL.replace("squares.yaml", "one.yaml");
    let answer = user.types(&format!("{words} --task study --name study")).succeeded();
    let tables = answer.stdout.lines().filter(|line| line.trim_start().starts_with("all ")).count();
    assert_eq!(tables, 11, "{}", answer.stdout);

    let text = std::fs::read_to_string(user.path().join("runs/val/study/study_one_best.txt")).unwrap();
    let lines: Vec<Vec<f64>> =
        text.lines().map(|line| line.split(' ').map(|cell| cell.parse().unwrap()).collect()).collect();
    let sizes: Vec<f64> = lines.iter().map(|line| line[0]).collect();
    assert_eq!(sizes, (2..=12).map(|step| f64::from(step * 128)).collect::<Vec<_>>());
    for line in lines {
        let (metrics, milliseconds) = line[1..].split_at(4);
        assert!(metrics.iter().all(|metric| (0.0..=1.0).contains(metric)), "{line:?}");
        assert_eq!(milliseconds.len(), 3, "before the model, in the model, suppression");
        assert!(milliseconds.iter().all(|time| *time > 0.0), "{line:?}");
    }
}

//! What `yolo predict` and `yolo val` do with several models, and what `--visualize` shows of one.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use user::{TRAIN, User};

const OPTIONS: &str = "--imgsz 64 --device cpu";
const FIRST: &str = "runs/train/exp/weights/last.pt";
const SECOND: &str = "runs/train/exp2/weights/last.pt";

/// A user with two detectors of the same classes.
fn with_detectors() -> User {
    let user = User::new();
    user.write_data_set();
    for seed in [0, 1] {
        let options = "--epochs 30 --batch 4 --nbs 4 --optimizer AdamW --noplots --noval";
        user.run(&format!("{TRAIN} {options} --seed {seed}")).succeeded();
    }
    user
}

/// The objects in all pictures: file, class and box.
fn found(user: &User, weights: &str, options: &str) -> Vec<String> {
    let command =
        format!("predict squares/images/val --weights {weights} {OPTIONS} --json --nosave {options}");
    let finished = user.run(&command).succeeded();
    let events = finished.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let pictures = events.filter(|event| event["event"] == "predicted");
    pictures
        .flat_map(|picture| {
            let objects = picture["objects"].as_array().unwrap().clone();
            let source = picture["source"].clone();
            objects.into_iter().map(move |object| format!("{source} {} {}", object["class"], object["box"]))
        })
        .collect()
}

#[test]
fn several_weights_are_an_ensemble() {
    let user = with_detectors();
    let set = |weights: &str, options: &str| -> BTreeSet<String> {
        found(&user, weights, options).into_iter().collect()
    };
    // Where nothing is suppressed, there are the objects of both.
    let all = "--conf-thres 0.05 --iou-thres 1";
    let (first, second) = (set(FIRST, all), set(SECOND, all));
    let both = set(&format!("{FIRST} {SECOND}"), all);
    assert!(!first.is_empty() && first != second);
    assert_eq!(both, first.union(&second).cloned().collect());
    // Suppression goes over the boxes of both, so an ensemble of the same model twice is that model.
    let few = "--conf-thres 0.05";
    assert_eq!(set(&format!("{FIRST} {FIRST}"), few), set(FIRST, few));

    let val = format!("val --data squares/squares.yaml {OPTIONS} --json");
    let metrics = |weights: &str, options: &str| -> Vec<Value> {
        let finished = user.run(&format!("{val} --weights {weights} {options}")).succeeded();
        let events = finished.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.filter(|event| event["event"] == "validated").collect()
    };
    let ensemble = metrics(&format!("{FIRST} {SECOND}"), "");
    assert_eq!(ensemble.len(), 1);
    let title = ensemble[0]["title"].as_str().unwrap();
    assert!(title.ends_with("exp2/weights/last.pt") && title.contains(" + "), "{title}");
    let alone = metrics(FIRST, "").remove(0);
    assert_ne!(ensemble[0]["rows"], alone["rows"]);
    assert_eq!(metrics(&format!("{FIRST} {FIRST}"), "")[0]["rows"], alone["rows"]);
    assert_eq!(metrics(&format!("{FIRST} {SECOND}"), "--task speed").len(), 2, "each has its own speed");
}

#[test]
fn models_of_other_classes_are_no_ensemble() {
    let user = with_detectors();
    let options = "--epochs 1 --noplots --noval --single-cls --name single";
    user.run(&format!("{TRAIN} {options}")).succeeded();
    let other = "runs/train/single/weights/last.pt";
    user.run(&format!("predict squares/images/val --weights {FIRST} {other} {OPTIONS}")).failed_with(
        1,
        &["last.pt has 2 classes, but ", "single/weights/last.pt has 1 class", "trained on the same classes"],
    );
}

/// The shape in the header of a NumPy file, and its values.
fn numpy(path: &Path) -> (String, Vec<f32>) {
    let bytes = std::fs::read(path).unwrap();
    let end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..end]).unwrap();
    let shape = header.split('(').nth(1).unwrap().split(')').next().unwrap().to_owned();
    let values = bytes[end..].chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap()));
    (shape, values.collect())
}

#[test]
fn the_layers_of_a_model_can_be_seen() {
    let user = with_detectors();
    let seen = |name: &str, options: &str| {
        let sources = "squares/images/val/00.bmp squares/images/val/01.bmp";
        let command =
            format!("predict {sources} --weights {FIRST} {OPTIONS} --visualize --name {name} {options}");
        user.run(&command).succeeded();
        user.path().join("runs/detect").join(name)
    };
    let folder = seen("seen", "");
    // yolov5n has 24 layers before Detect; at 64 pixels, all have maps of at least two pixels.
    let mut names: Vec<String> = std::fs::read_dir(folder.join("00"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 48, "{names:?}");
    for name in ["stage0_Conv_features.png", "stage9_SPPF_features.npy", "stage11_Upsample_features.npy"] {
        assert!(names.iter().any(|known| known == name), "{name} is not in {names:?}");
    }
    let (shape, values) = numpy(&folder.join("00/stage2_C3_features.npy"));
    assert_eq!((shape.as_str(), values.len()), ("32, 16, 16", 32 * 16 * 16));
    assert!(values.iter().all(|value| value.is_finite()));
    let other = numpy(&folder.join("01/stage2_C3_features.npy")).1;
    assert_ne!(values, other);
    // In a batch, each picture has its own.
    let together = seen("together", "--batch 2 --nosave");
    let again = numpy(&together.join("01/stage2_C3_features.npy")).1;
    assert!(again.iter().zip(&other).all(|(a, b)| (a - b).abs() < 1e-4));
    assert!(!together.join("00.bmp").exists());
}

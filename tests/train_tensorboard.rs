//! `yolo train --tensorboard`: the event files of a run, and of one that is interrupted and resumed. Frames and
//! checksums are read here; what TensorBoard itself reads is compared where `YOLO_TEST_PYTHON` names a Python with it.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use user::{SIGINT, TRAIN, User, wait_for};

/// The event files of a run, the oldest first.
fn event_files(run: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(run)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("events.out.tfevents."))
        .collect();
    files.sort();
    files
}

/// The records of an event file, whose checksums must be right.
fn records(path: &Path) -> Vec<Vec<u8>> {
    let checked = |bytes: &[u8], checksum: &[u8]| {
        let masked = crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8);
        assert_eq!(masked.to_le_bytes(), checksum, "a checksum in {}", path.display());
    };
    let bytes = std::fs::read(path).unwrap();
    let (mut rest, mut records) = (bytes.as_slice(), Vec::new());
    while !rest.is_empty() {
        checked(&rest[..8], &rest[8..12]);
        let length = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
        let record = &rest[12..12 + length];
        checked(record, &rest[12 + length..16 + length]);
        records.push(record.to_vec());
        rest = &rest[16 + length..];
    }
    records
}

fn contains(record: &[u8], text: &str) -> bool {
    record.windows(text.len()).any(|window| window == text.as_bytes())
}

/// How many records of a file have this text, such as a tag.
fn count(path: &Path, text: &str) -> usize {
    records(path).iter().filter(|record| contains(record, text)).count()
}

/// What TensorBoard's own reader finds in a run folder; `None` without a Python that has it.
#[allow(clippy::print_stdout, reason = "the output of a test says what it skips")]
fn read_by_tensorboard(run: &Path) -> Option<Value> {
    const SCRIPT: &str = "
import json, sys
try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import plugin_data_pb2
except ImportError:
    print('null'); sys.exit()
events = EventAccumulator(sys.argv[1], size_guidance={'scalars': 0, 'images': 0}).Reload()
def hparams(tag):
    content = events.SummaryMetadata('_hparams_/' + tag).plugin_data.content
    return plugin_data_pb2.HParamsPluginData.FromString(content)
tags = events.Tags()
start = hparams('session_start_info').session_start_info.hparams
ended = '_hparams_/session_end_info' in tags['tensors'] or '_hparams_/session_end_info' in events.summary_metadata
print(json.dumps({
    'steps': [point.step for point in events.Scalars('train/box_loss')],
    'map50': [point.value for point in events.Scalars('metrics/mAP_0.5')],
    'scalars': sorted(tags['scalars']),
    'images': {tag: [[i.width, i.height] for i in events.Images(tag)] for tag in tags['images']},
    'imgsz': start['imgsz'].number_value, 'cfg': start['cfg'].string_value, 'lr0': start['lr0'].number_value,
    'status': hparams('session_end_info').session_end_info.status if ended else None,
}))";
    let Some(python) = std::env::var_os("YOLO_TEST_PYTHON") else {
        println!("skipped: YOLO_TEST_PYTHON does not name a Python with tensorboard");
        return None;
    };
    let output = Command::new(python).args(["-c", SCRIPT]).arg(run).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read: Value = serde_json::from_slice(&output.stdout).unwrap();
    if read.is_null() {
        println!("skipped: the Python of YOLO_TEST_PYTHON has no tensorboard");
        return None;
    }
    Some(read)
}

#[test]
fn a_run_writes_scalars_pictures_and_settings() {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{TRAIN} --epochs 3 --tensorboard --nproc-per-node 2")).succeeded();
    let run = user.path().join("runs/train/exp");
    let files = event_files(&run);
    assert_eq!(files.len(), 1, "one rank writes: {files:?}");
    let file = &files[0];
    assert!(contains(&records(file)[0], "brain.Event:2"));
    for tag in ["train/box_loss", "val/cls_loss", "x/lr2"] {
        assert_eq!(count(file, tag), 3, "{tag}: one per epoch");
    }
    for tag in ["batches/train_batch0", "batches/val_batch0_pred", "_hparams_/session_end_info"] {
        assert_eq!(count(file, tag), 1, "{tag}");
    }

    let Some(read) = read_by_tensorboard(&run) else { return };
    assert_eq!(read["steps"], json!([0, 1, 2]));
    assert_eq!(read["scalars"].as_array().unwrap().len(), 13);
    assert_eq!([&read["imgsz"], &read["lr0"], &read["status"]], [&json!(64.0), &json!(0.01), &json!(1)]);
    assert_eq!(read["cfg"], "yolov5n");
    assert!(read["images"]["batches/train_batch0"][0][0].as_u64().unwrap() >= 128, "{read}");
    let rows = std::fs::read_to_string(run.join("results.csv")).unwrap();
    for (row, value) in rows.lines().skip(1).zip(read["map50"].as_array().unwrap()) {
        let written: f64 = row.split(',').nth(6).unwrap().trim().parse().unwrap();
        let value = value.as_f64().unwrap();
        assert!((written - value).abs() <= 1e-4 * written.max(1e-3), "{written} and {value}");
    }
}

#[test]
fn a_resumed_run_writes_a_second_file_and_each_epoch_counts_once() {
    let user = User::new();
    user.write_data_set();
    let running = user.start(&format!("{TRAIN} --epochs 40 --tensorboard --noplots"));
    let run = user.path().join("runs/train/exp");
    wait_for("the first checkpoint", || run.join("weights/last.pt").exists().then_some(()));
    running.signal(SIGINT);
    assert_eq!(running.wait().code, Some(130));
    user.run("train --resume runs/train/exp").succeeded();
    let files = event_files(&run);
    assert_eq!(files.len(), 2, "{files:?}");
    let losses: usize = files.iter().map(|file| count(file, "train/box_loss")).sum();
    assert_eq!(losses, 40);
    assert_eq!(count(&files[0], "session_end_info"), 0, "the interrupted run has not finished");
    assert_eq!(count(&files[1], "session_end_info"), 1);
    if let Some(read) = read_by_tensorboard(&run) {
        assert_eq!(read["steps"], json!((0..40).collect::<Vec<u32>>()));
        assert_eq!(read["images"], json!({}), "--noplots draws nothing");
    }
}

#[test]
fn without_the_option_there_is_no_event_file() {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{TRAIN} --epochs 1 --noplots")).succeeded();
    assert_eq!(event_files(&user.path().join("runs/train/exp")), Vec::<PathBuf>::new());
}

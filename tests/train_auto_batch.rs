//! `yolo train --batch -1` as a user runs it on the CPU: which number it takes, where it is kept, and where the option
//! is refused. What is measured on a GPU is tested in `trainer/tests/batch_memory.rs`.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use user::{TRAIN, User};

/// [`TRAIN`] without its `--batch`.
fn train() -> String {
    let (before, after) = TRAIN.split_once("--batch ").unwrap();
    format!("{before}{}", after.split_once(' ').map_or("", |(_, rest)| rest))
}

#[test]
fn the_cpu_takes_16_images_or_the_next_multiple_of_the_ranks() {
    let user = User::new();
    user.write_data_set();
    let command = format!("{} --noplots --noval --epochs 1 --batch -1 --nproc-per-node 3", train());
    let output = user.run(&command).succeeded();
    let line = "--batch -1: 18 images per step, because memory is measured on GPUs only";
    assert_eq!(output.stderr.matches(line).count(), 1, "{}", output.stderr);
    let folder = user.path().join("runs/train/exp");
    let options = std::fs::read_to_string(folder.join("opt.yaml")).unwrap();
    assert!(options.contains("batch_size: 18\n"), "{options}");
    let plan: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("plan.json")).unwrap()).unwrap();
    assert_eq!(plan["task"]["batch"], 18);
}

#[test]
fn it_is_refused_where_no_memory_can_be_measured() {
    let user = User::new();
    user.write_data_set();
    let refused = |options: &str, message: &str| {
        user.run(&format!("{} --batch -1 {options}", train())).failed_with(2, &["--batch", message]);
    };
    refused("--nnodes 2 --node-rank 0 --master-addr 127.0.0.1", "has no meaning with --nnodes");
    refused("--nproc-per-node 2 --batch-split 2,4", "--batch -1 and --batch-split are both given");
    refused("--device cpu,cpu --parallel model", "the model is spread over several");
    user.run("train --resume --batch -1").failed_with(2, &["--batch cannot be changed with --resume"]);
    user.run("bench --data data.yaml --weights= --cfg yolov5n --batch -1")
        .failed_with(2, &["--batch -1, the largest batch that fits, is for a run that `yolo train` starts"]);
    user.run("bench --data data.yaml --weights= --cfg yolov5n --scaling --batch -1")
        .failed_with(2, &["--batch -1"]);
    user.run("val --data data.yaml --weights best.pt --batch -1").failed_with(2, &["--batch"]);
    let variables = [
        ("RANK", "0"),
        ("LOCAL_RANK", "0"),
        ("WORLD_SIZE", "1"),
        ("LOCAL_WORLD_SIZE", "1"),
        ("MASTER_ADDR", "127.0.0.1"),
        ("MASTER_PORT", "29500"),
    ];
    let rank = train().replacen("train", "rank", 1);
    user.start_with(&format!("{rank} --batch -1"), &variables)
        .wait()
        .failed_with(2, &["--batch -1", "has no meaning in `yolo rank`"]);
    assert!(!user.path().join("runs").exists());
}

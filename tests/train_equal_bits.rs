//! Equal seeds give equal weights, bit for bit, whatever only changes how images are loaded: the number of loader
//! threads, and where decoded images are kept. Two ranks share those in memory; `rank.rs` compares with ranks that do
//! not, and `train_interrupted.rs` and `train_killed.rs` with runs that stop or are killed and continue.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use indexmap::IndexMap;
use torch_checkpoint::{TensorData, read};
use user::{Finished, User};

/// Two epochs with mosaics of the 16 images of the small data set.
const TRAIN: &str = "train --data squares/squares.yaml --cfg yolov5n --weights= --imgsz 64 --batch 8 --nbs 8 \
                     --device cpu --epochs 2 --noplots";

/// What is equal after runs with equal seeds.
#[derive(PartialEq)]
struct Results {
    last: IndexMap<String, TensorData>,
    best: IndexMap<String, TensorData>,
    csv: String,
}

fn train(user: &User, name: &str, options: &str) -> (Results, Finished) {
    let output = user.run(&format!("{TRAIN} --name {name} {options}")).succeeded();
    let folder = user.path().join("runs/train").join(name);
    let tensors = |file: &str| read(&folder.join("weights").join(file)).unwrap().tensors;
    let csv = std::fs::read_to_string(folder.join("results.csv")).unwrap();
    (Results { last: tensors("last.pt"), best: tensors("best.pt"), csv }, output)
}

#[test]
fn loader_threads_and_caches_do_not_change_the_weights() {
    let user = User::new();
    user.write_data_set();
    let (expected, _) = train(&user, "none", "--workers 0");
    for (name, options) in [
        ("one", "--workers 1"),
        ("three", "--workers 3"),
        ("ram", "--workers 3 --cache ram"),
        ("decoded", "--workers 2 --cache none"),
        ("disk", "--workers 0 --cache disk"),
        // From the files that the run before has left.
        ("disk-again", "--workers 1 --cache disk"),
    ] {
        assert!(train(&user, name, options).0 == expected, "the weights with {options} differ");
    }
    let (other, _) = train(&user, "seed", "--workers 0 --seed 1");
    assert!(other.last != expected.last, "another seed gives other weights");
}

#[test]
fn two_ranks_share_decoded_images_and_train_as_without_sharing() {
    let user = User::new();
    user.write_data_set();
    let (expected, output) = train(&user, "none", "--nproc-per-node 2 --workers 0");
    let shared = "2 ranks shared 16 of 16 decoded images in memory (192.0 KiB)";
    assert!(output.stderr.contains(shared), "{}", output.stderr);
    for (name, options) in [("ram", "--workers 1 --cache ram"), ("disk", "--workers 1 --cache disk")] {
        let (found, output) = train(&user, name, &format!("--nproc-per-node 2 {options}"));
        assert!(found == expected, "the weights with {options} differ");
        assert!(output.stderr.contains(shared), "{}", output.stderr);
        for rank in 0..2 {
            let log = user.path().join(format!("runs/train/{name}/logs/rank{rank}.log"));
            let log = std::fs::read_to_string(log).unwrap();
            assert!(log.contains(shared), "each rank says it in its log: {log}");
        }
    }
    // A rank alone shares with nobody.
    let (_, output) = train(&user, "alone", "--workers 1 --cache ram");
    assert!(!output.stderr.contains("shared"), "{}", output.stderr);
}

//! Training that diverges, as a user sees it: the run ends with one message that says where, instead of going on with
//! weights that cannot get better.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::path::{Path, PathBuf};

use torch_checkpoint::{TensorData, Value, read, write_pt};
use user::{TRAIN, User};

/// A run of one epoch, from which the others take their files. Returns its folder.
fn trained(user: &User) -> PathBuf {
    user.write_data_set();
    user.run(&format!("{TRAIN} --epochs 1 --noplots")).succeeded();
    user.path().join("runs/train/exp")
}

#[test]
fn a_loss_that_is_not_finite_ends_the_run_and_names_its_batch() {
    let user = User::new();
    let hyp = std::fs::read_to_string(trained(&user).join("hyp.yaml")).unwrap();
    // The largest that is allowed of all that make weights large.
    let high =
        [("lr0", "10"), ("lrf", "1"), ("momentum", "0.98"), ("weight_decay", "10"), ("warmup_epochs", "0")];
    let gains = ["box", "obj", "cls"].map(|gain| (gain, "10000"));
    let line = |line: &str| {
        let name = line.split(':').next().unwrap();
        let new = high.iter().chain(&gains).find(|(key, _)| *key == name);
        new.map_or(line.to_owned(), |(key, value)| format!("{key}: {value}"))
    };
    let lines: Vec<String> = hyp.lines().map(line).collect();
    std::fs::write(user.path().join("high.yaml"), lines.join("\n")).unwrap();
    let run =
        user.run(&format!("{TRAIN} --epochs 200 --noplots --nbs 8 --noval --optimizer SGD --hyp high.yaml"));
    let run = run.failed_with(1, &[" loss was ", " of epoch ", ": training diverged", "hint: lower lr0"]);
    // Rank 0 writes it at the end of an epoch.
    let last = user.path().join("runs/train/exp2/weights/last.pt").is_file();
    assert_eq!(run.stderr.contains("; last.pt holds an earlier state"), last, "{}", run.stderr);
}

/// Writes these weights with an infinite mean in the first normalization.
fn with_an_infinite_mean(weights: &Path, new: &Path) {
    let mut file = read(weights).unwrap();
    let Value::Dict(fields) = &mut file.root else { panic!("a checkpoint is a dictionary") };
    let (_, model) = fields.iter_mut().find(|(key, _)| key.as_str() == Some("model")).unwrap();
    let Value::Dict(tensors) = model else { panic!("a model is a dictionary") };
    let (_, mean) =
        tensors.iter_mut().find(|(key, _)| key.as_str() == Some("model.0.bn.running_mean")).unwrap();
    let shape = mean.as_tensor().unwrap().shape.clone();
    *mean = Value::Tensor(TensorData::from_f32(shape.clone(), &vec![f32::INFINITY; shape[0]]));
    write_pt(new, &file.root).unwrap();
}

#[test]
fn statistics_that_stay_infinite_end_the_run_though_its_losses_are_finite() {
    let user = User::new();
    let run = trained(&user);
    with_an_infinite_mean(&run.join("weights/best.pt"), &user.path().join("infinite.pt"));
    let training = TRAIN.replace("--cfg yolov5n --weights=", "--weights infinite.pt");
    let message = "a mean or variance of batch normalization is not finite in epoch 1: training diverged";
    user.run(&format!("{training} --epochs 2 --noplots")).failed_with(1, &[message]);
}

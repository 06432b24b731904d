//! `yolo train --parallel dp` and `--parallel model` as a user runs them, on the CPU twice: one process, its files, and
//! a run that changes its mode when it is resumed. `train_killed.rs` kills such runs.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use indexmap::IndexMap;
use serde_json::{Value, json};
use torch_checkpoint::{TensorData, read};
use user::{Finished, SIGKILL, TRAIN, User, free_port, send_signal, wait_for};

/// Two epochs on two devices; the mode is to be added.
const TWO: &str = "--epochs 2 --device cpu,cpu --parallel";

fn train(user: &User, name: &str, options: &str) -> Finished {
    user.run(&format!("{TRAIN} --noplots {options} --name {name}")).succeeded()
}

fn tensors(user: &User, run: &str, file: &str) -> IndexMap<String, TensorData> {
    read(&user.path().join("runs/train").join(run).join("weights").join(file)).unwrap().tensors
}

fn results(user: &User, run: &str) -> String {
    std::fs::read_to_string(user.path().join("runs/train").join(run).join("results.csv")).unwrap()
}

#[test]
fn a_spread_model_trains_and_validates_as_on_one_device() {
    let user = User::new();
    user.write_data_set();
    let one = train(&user, "one", "--epochs 2 --optimizer AdamW");
    let spread = train(&user, "spread", &format!("{TWO} model --optimizer AdamW"));
    for file in ["last.pt", "best.pt"] {
        assert!(tensors(&user, "one", file) == tensors(&user, "spread", file), "{file} differs");
    }
    assert_eq!(results(&user, "spread"), results(&user, "one"));
    assert_eq!(spread.table(), one.table());
    assert_eq!(spread.stderr.matches("the model is spread: layers 0 to ").count(), 1, "{}", spread.stderr);
    assert!(spread.stderr.contains(" to 24 on cpu, about "), "{}", spread.stderr);
    let options = std::fs::read_to_string(user.path().join("runs/train/spread/opt.yaml")).unwrap();
    assert!(options.contains("parallel: \"model\"") && options.contains("device: \"cpu,cpu\""), "{options}");
}

#[test]
fn replicas_train_in_one_process() {
    let user = User::new();
    user.write_data_set();
    // 16 images in batches of 6: the last one has 4.
    let events = train(&user, "replicas", &format!("{TWO} dp --batch 6 --json")).stdout;
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&events[0]["event"], &events[0]["world_size"]), (&json!("planned"), &json!(1)));
    let ranks: Vec<&Value> = events.iter().filter(|event| event["event"] == "rank").collect();
    assert_eq!((ranks.len(), &ranks[0]["device"]), (1, &json!("cpu,cpu")));
    let epochs = events.iter().filter(|event| event["event"] == "epoch").count();
    assert_eq!((epochs, &events.last().unwrap()["event"]), (2, &json!("finished")));

    train(&user, "again", &format!("{TWO} dp --batch 6"));
    assert!(tensors(&user, "again", "last.pt") == tensors(&user, "replicas", "last.pt"), "two runs differ");
    train(&user, "one", "--epochs 2 --batch 6");
    assert!(
        tensors(&user, "one", "last.pt") != tensors(&user, "replicas", "last.pt"),
        "no batch was divided"
    );
    // Any command takes the weights.
    user.run("val --data squares/squares.yaml --imgsz 64 --device cpu --weights runs/train/replicas/weights/best.pt")
        .succeeded();
}

#[test]
fn a_killed_process_is_named_with_its_devices_and_the_run_continues_in_another_mode() {
    let user = User::new();
    user.write_data_set();
    let running =
        user.start(&format!("{TRAIN} --noplots --epochs 500 --device cpu,cpu --parallel dp --name cut"));
    let run = user.path().join("runs/train/cut");
    wait_for("a checkpoint", || run.join("weights/last.pt").is_file().then_some(()));
    send_signal(running.ranks()[0], SIGKILL);
    running.wait().failed_with(1, &["rank 0 of 1 (cpu,cpu on ", "signal 9 (SIGKILL)", "--resume"]);

    // Shorten the plan, so that the resumed run ends soon.
    let plan = std::fs::read_to_string(run.join("plan.json")).unwrap();
    let epochs = results(&user, "cut").lines().count() + 1;
    assert!(plan.contains("\"epochs\": 500"), "{plan}");
    let plan = plan.replace("\"epochs\": 500", &format!("\"epochs\": {epochs}"));
    std::fs::write(run.join("plan.json"), plan).unwrap();
    let resume = "train --resume runs/train/cut";
    user.run(&format!("{resume} --parallel dp --device cpu")).failed_with(2, &["needs several devices"]);
    let finished = user.run(&format!("{resume} --parallel model")).succeeded();
    for said in ["resuming on one process (cpu,cpu, --parallel model)", "the model is spread: "] {
        assert!(finished.stderr.contains(said), "{}", finished.stderr);
    }
    assert_eq!(results(&user, "cut").lines().count(), 1 + epochs, "{}", results(&user, "cut"));
}

#[test]
fn what_concerns_several_processes_is_refused() {
    let user = User::new();
    user.write_data_set();
    user.run(&format!("{TRAIN} {TWO} dp --sync-bn"))
        .failed_with(2, &["--sync-bn cannot be used with --parallel dp", "--parallel ddp"]);
    user.run(&format!("{TRAIN} --parallel dp")).failed_with(2, &["needs several devices", "--device 0,1"]);
    let place = format!("--nnodes 2 --node-rank 0 --master-addr 127.0.0.1 --master-port {}", free_port());
    user.run(&format!("{TRAIN} {TWO} model {place}")).failed_with(2, &["--parallel model", "--nnodes"]);
    let rank = TRAIN.replacen("train", "rank", 1);
    let mut command = user.command(&format!("{rank} --parallel dp"));
    let (address, port) = (("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29500"));
    let world = [("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_WORLD_SIZE", "1")];
    command.envs(world.into_iter().chain([address, port]));
    Finished::from(command.output().unwrap()).failed_with(2, &["--parallel dp", "`yolo rank`"]);
    assert!(!user.path().join("runs/train").exists(), "a refused run leaves a folder");
}

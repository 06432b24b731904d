//! Ranks that meet at the store of a launcher, as under torchrun: the test serves the store, as torchrun's agent
//! does, and starts `yolo-trainer` with plans that were made apart. Keys of an earlier start are still there.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use tch_distributed::{Store as _, TcpStore};
use yolo_base::env::{
    MASTER_ADDR, MASTER_PORT, RANK, YOLO_EVENTS_FD, YOLO_JOIN_SECONDS, YOLO_RENDEZVOUS_FD, YOLO_STORE_PREFIX,
};
use yolo_plan::RunPlan;
use yolo_plan::dataset::Places;
use yolo_plan::device::Inventory;
use yolo_plan::options::TrainOptions;
use yolo_plan::run::{Part, PlanContext, Planning, plan_train};

/// Four gray images of 64x64 pixels with one object each.
fn write_data_set(folder: &Path) {
    const PIXELS: u32 = 64 * 64 * 3;
    for kind in ["images", "labels"] {
        std::fs::create_dir_all(folder.join(kind)).unwrap();
    }
    for index in 0..4_u8 {
        let mut bmp = b"BM".to_vec();
        for number in [54 + PIXELS, 0, 54, 40, 64, 64, 1 | 24 << 16, 0, 0, 0, 0, 0, 0] {
            bmp.extend(number.to_le_bytes());
        }
        bmp.resize(bmp.len() + PIXELS as usize, 90 + index);
        std::fs::write(folder.join(format!("images/{index}.bmp")), bmp).unwrap();
        std::fs::write(folder.join(format!("labels/{index}.txt")), "0 0.5 0.5 0.4 0.4\n").unwrap();
    }
    std::fs::write(folder.join("few.yaml"), "train: images\nval: images\nnames: [square]\n").unwrap();
}

/// The plan of rank `rank` of two on one machine, in a folder of its own.
fn plan(root: &Path, rank: usize) -> RunPlan {
    let working_dir = root.join("work");
    write_data_set(&working_dir);
    let part = Part { first: rank, first_here: rank, here: 2, world_size: 2 };
    let context = PlanContext {
        inventory: Inventory { cores: 2, ..Inventory::default() },
        places: Places { working_dir, data_sets: root.join("sets") },
        fetched: BTreeMap::new(),
        generated: true,
        part: Some(part),
        measured_batch: None,
        unavailable: Default::default(),
    };
    let options = TrainOptions {
        data: Some("few.yaml".to_owned()),
        weights: Some(String::new()),
        cfg: Some("yolov5n".to_owned()),
        device: Some("cpu".to_owned()),
        imgsz: Some(64),
        batch_size: Some(4),
        epochs: Some(1),
        noplots: true,
        noval: true,
        project: Some(root.join(format!("rank{rank}"))),
        ..TrainOptions::default()
    };
    let Planning::Ready(planned) = plan_train(&options, &context).unwrap() else { panic!("not ready") };
    std::fs::create_dir_all(planned.plan.run_dir.join("weights")).unwrap();
    planned.plan
}

fn start(plan: &RunPlan, rank: usize, port: u16, prefix: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_yolo-trainer"))
        .arg(plan.write().unwrap())
        .env(RANK, rank.to_string())
        .env(MASTER_ADDR, "127.0.0.1")
        .env(MASTER_PORT, port.to_string())
        .env(YOLO_STORE_PREFIX, prefix)
        .env(YOLO_JOIN_SECONDS, "120")
        .env_remove(YOLO_EVENTS_FD)
        .env_remove(YOLO_RENDEZVOUS_FD)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn ranks_meet_in_their_part_of_the_launchers_store() {
    let root = tempfile::tempdir().unwrap();
    let agent = TcpStore::bind(([127, 0, 0, 1], 0).into(), Duration::from_secs(60)).unwrap();
    let plans = [0, 1].map(|rank| plan(root.path(), rank));
    // What a start left that ended before all had come.
    agent.set("yolo/run/0/meeting/rank/1", b"{}").unwrap();
    agent.set("yolo/run/0/meeting/result", b"{\"error\":\"of the start before\"}").unwrap();
    agent.add("yolo/run/0/meeting/count/0", 1).unwrap();
    let children = [0, 1].map(|rank| start(&plans[rank], rank, agent.port(), "yolo/run/1"));
    for (rank, child) in children.into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "rank {rank}: {}", text(&output));
    }
    assert!(plans[0].run_dir.join("weights/last.pt").is_file());
    assert!(!plans[1].run_dir.join("results.csv").exists(), "only rank 0 writes results");

    // Two processes with one number: the launcher's variables are wrong.
    let twice = start(&plans[0], 0, agent.port(), "yolo/run/1").wait_with_output().unwrap();
    assert!(!twice.status.success());
    assert!(text(&twice).contains("another process is rank 0 too"), "{}", text(&twice));
}

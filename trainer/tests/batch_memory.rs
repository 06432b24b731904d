//! The measurement for `yolo train --batch -1`, made by a rank: the memory of steps with growing batches, and the choice
//! that follows. The plan is for a GPU; the rank measures on the CPU unless `YOLO_TEST_DEVICE` names a GPU.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use yolo_base::env::{RANK, YOLO_EVENTS_FD, YOLO_RENDEZVOUS_FD, YOLO_TEST_DEVICE};
use yolo_plan::auto_batch::{BatchMemory, SIZES};
use yolo_plan::bench_report::Measurement;
use yolo_plan::dataset::Places;
use yolo_plan::device::{Device, Gpu, Inventory};
use yolo_plan::event::Event;
use yolo_plan::options::{PrecisionOption, TrainOptions};
use yolo_plan::run::{PlanContext, Planning, plan_batch_memory, plan_train};

/// Measures a run with these options on the device under test.
fn measured(root: &Path, options: TrainOptions) -> BatchMemory {
    let working_dir = root.join("work");
    std::fs::create_dir_all(working_dir.join("images")).unwrap();
    std::fs::write(working_dir.join("few.yaml"), "train: images\nval: images\nnames: [square]\n").unwrap();
    let gpu = Gpu { index: 0, memory: 8 << 30, free: 6 << 30, ..Gpu::default() };
    let inventory = Inventory { cores: 2, gpus: vec![gpu], cuda_libtorch: true, ..Inventory::default() };
    let context = PlanContext {
        inventory,
        places: Places { working_dir, data_sets: root.join("sets") },
        fetched: BTreeMap::new(),
        generated: true,
        part: None,
        measured_batch: None,
        unavailable: Default::default(),
    };
    let options = TrainOptions {
        data: Some("few.yaml".to_owned()),
        weights: Some(String::new()),
        cfg: Some("yolov5n".to_owned()),
        device: Some("0".to_owned()),
        batch_size: Some(-1),
        precision: Some(PrecisionOption::Fp32),
        ..options
    };
    let Planning::Ready(planned) = plan_train(&options, &context).unwrap() else { panic!("not ready") };
    let folder = root.join("measurement");
    std::fs::create_dir_all(&folder).unwrap();
    let mut plan = plan_batch_memory(&planned.plan, &context.inventory, folder).unwrap().plan;
    if !std::env::var(YOLO_TEST_DEVICE).is_ok_and(|device| device.starts_with("cuda")) {
        plan.ranks.devices = vec![Device::Cpu];
    }
    // Events have a descriptor of their own, because libtorch writes to the others.
    let output = Command::new("sh")
        .args(["-c", "exec \"$0\" \"$1\" 3>&1 >&2", env!("CARGO_BIN_EXE_yolo-trainer")])
        .arg(plan.write().unwrap())
        .env(RANK, "0")
        .env(YOLO_EVENTS_FD, "3")
        .env_remove(YOLO_RENDEZVOUS_FD)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let events = text.lines().filter_map(|line| serde_json::from_str::<Event>(line).ok());
    let memory = |event| match event {
        Event::BenchMeasured { measurement: Measurement::Memory(memory) } => Some(memory),
        _ => None,
    };
    events.filter_map(memory).next().expect(&text)
}

#[test]
fn larger_batches_need_more_and_the_largest_that_fits_is_chosen() {
    let root = tempfile::tempdir().unwrap();
    let options = TrainOptions { imgsz: Some(64), multi_scale: true, ..TrainOptions::default() };
    let measured = measured(root.path(), options);
    let sizes: Vec<usize> = measured.batches.iter().map(|batch| batch.images).collect();
    assert_eq!((sizes.as_slice(), measured.ran_out_at), (&SIZES[..], None));
    let needed: Vec<u64> = measured.batches.iter().map(|batch| batch.bytes).collect();
    assert!(needed.is_sorted() && needed[0] > 1 << 20 && needed[4] > needed[0], "{needed:?}");
    // The CPU says nothing about what is available. Twice of what 16 images needed has room for more than them.
    let available = needed[4] * 2;
    let known = BatchMemory { available, ..measured };
    let batch = known.largest_batch(1, 1).unwrap();
    assert!(batch.images > 16 && batch.needed <= available / 5 * 4, "{batch:?}");
}

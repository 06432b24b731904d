//! The tables of `yolo bench`: which runs they consist of, one message for each invalid value, and the
//! JSON and CSV of their results.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use serde_json::json;
use yolo_base::Hint as _;
use yolo_plan::PlanError;
use yolo_plan::bench_report::{Rate, Together};
use yolo_plan::bench_tables::{Outcome, Tables, to_csv};
use yolo_plan::device::{Device, Gpu};
use yolo_plan::options::{BenchOptions, Workers};
use yolo_plan::run::{
    BenchPart, BenchTask, Need, PlannedRow, PlannedTables, Table, TablesPlanning, Task, plan_bench_tables,
};

use support::Fixture;

fn options() -> BenchOptions {
    BenchOptions {
        weights: Some(String::new()),
        cfg: Some("yolov5n".into()),
        data: Some("data.yaml".into()),
        ..BenchOptions::default()
    }
}

fn scaling(device: &str) -> BenchOptions {
    BenchOptions { scaling: true, device: Some(device.into()), ..options() }
}

fn batches(device: &str, sizes: &str) -> BenchOptions {
    BenchOptions { batches: Some(sizes.into()), device: Some(device.into()), ..options() }
}

fn with_gpus(count: usize) -> Fixture {
    let mut fixture = Fixture::new();
    let gpu = |index| Gpu { index, name: "NVIDIA A10".into(), memory: 24 << 30, ..Gpu::default() };
    fixture.context.inventory.gpus = (0..count).map(gpu).collect();
    fixture.context.inventory.cuda_libtorch = true;
    fixture
}

fn plan(fixture: &Fixture, options: &BenchOptions) -> Result<PlannedTables, PlanError> {
    match plan_bench_tables(options, &fixture.context)? {
        TablesPlanning::Ready(tables) => Ok(*tables),
        TablesPlanning::Missing(needs) => panic!("{needs:?} are missing"),
    }
}

fn bench(row: &PlannedRow) -> &BenchTask {
    match &row.plan.task {
        Task::Bench(task) => task,
        other => panic!("not a benchmark: {other:?}"),
    }
}

/// Devices, batch and threads of each row.
fn shape(tables: &PlannedTables) -> Vec<(usize, usize, usize)> {
    let of =
        |row: &PlannedRow| (row.plan.ranks.devices.len(), bench(row).training.batch, row.plan.ranks.threads);
    tables.rows.iter().map(of).collect()
}

#[test]
fn each_number_of_devices_has_the_same_batch_per_device() {
    let tables = plan(&Fixture::new(), &scaling("cpu,cpu,cpu,cpu")).unwrap();
    // All rows share the 8 cores.
    assert_eq!(shape(&tables), [(1, 16, 8), (2, 32, 4), (4, 64, 2)]);
    for row in &tables.rows {
        let task = bench(row);
        assert_eq!(task.parts, [BenchPart::Training, BenchPart::Validation]);
        assert_eq!((task.rounds, task.seconds, row.table), (5, 8, Table::Scaling));
        assert_eq!(row.plan.ranks.world_size, row.plan.ranks.devices.len());
    }
    let eight = BenchOptions { batch_size: Some(8), synthetic: true, ..scaling("cpu,cpu,cpu") };
    let tables = plan(&Fixture::new(), &eight).unwrap();
    assert_eq!(shape(&tables), [(1, 8, 8), (2, 16, 4), (3, 24, 2)]);
    assert_eq!(bench(&tables.rows[0]).parts, [BenchPart::Synthetic, BenchPart::Validation]);
    // Advice about the batch of a run is no news for somebody who measures several.
    let [note] = &tables.notes[..] else { panic!("{:?}", tables.notes) };
    assert!(note.starts_with("communicating over gloo"), "{note}");
    assert!(tables.warnings.is_empty(), "{:?}", tables.warnings);
}

#[test]
fn all_gpus_are_compared_unless_some_are_named() {
    let fixture = with_gpus(3);
    let tables = plan(&fixture, &BenchOptions { device: None, ..scaling("") }).unwrap();
    let devices: Vec<_> = tables.rows.iter().map(|row| row.plan.ranks.devices.clone()).collect();
    let gpus = [0, 1, 2].map(Device::Cuda);
    assert_eq!(devices, [&gpus[..1], &gpus[..2], &gpus[..]]);
    let tables = plan(&fixture, &scaling("2,0")).unwrap();
    assert_eq!(tables.rows[0].plan.ranks.devices, [Device::Cuda(2)]);
    assert_eq!(
        shape(&plan(&Fixture::new(), &BenchOptions { device: None, ..scaling("") }).unwrap()).len(),
        1
    );
}

#[test]
fn batches_are_totals_on_one_and_on_two_devices() {
    let tables = plan(&Fixture::new(), &batches("cpu,cpu,cpu", "8,4")).unwrap();
    assert_eq!(shape(&tables), [(1, 4, 8), (1, 8, 8), (2, 4, 4), (2, 8, 4)]);
    assert!(tables.rows.iter().all(|row| bench(row).parts == [BenchPart::Training]));
    let both = BenchOptions { scaling: true, ..batches("cpu", "5") };
    let tables = plan(&Fixture::new(), &both).unwrap();
    assert_eq!(shape(&tables), [(1, 16, 8), (1, 5, 8)]);
    assert_eq!([tables.rows[0].table, tables.rows[1].table], [Table::Scaling, Table::Batches]);
}

#[test]
fn each_mistake_has_one_message() {
    let error = |options: &BenchOptions| plan(&Fixture::new(), options).unwrap_err();
    let cases = [
        (batches("cpu,cpu", "4,7"), "--batches 4,7: 7 images cannot be divided between two devices"),
        (batches("cpu", "4,x"), "--batches 4,x: \"x\" is not a number of images"),
        (scaling("0,1"), "--device 0,1 needs a GPU, but there is none"),
        (BenchOptions { batch_size: Some(0), ..scaling("cpu") }, "--batch 0 is not a number of images"),
        (BenchOptions { seconds: Some(0), ..scaling("cpu") }, "--seconds 0 is not a number from 1 to 3600"),
        (BenchOptions { data: Some("gone.yaml".into()), ..scaling("cpu") }, "the data set gone.yaml was not"),
    ];
    for (options, expected) in cases {
        let message = error(&options).to_string();
        assert!(message.starts_with(expected), "{message}\ndoes not begin with\n{expected}");
    }
    let auto = error(&BenchOptions { workers: Some(Workers::Auto), ..scaling("cpu") });
    assert!(auto.to_string().starts_with("--workers auto does not go together"), "{auto}");
    assert!(auto.hint().unwrap().contains("--workers auto"));
}

#[test]
fn what_is_missing_is_fetched_before_the_first_row() {
    let options = BenchOptions { data: Some("coco8".into()), ..scaling("cpu,cpu") };
    let planning = plan_bench_tables(&options, &Fixture::new().context).unwrap();
    assert_eq!(planning, TablesPlanning::Missing(vec![Need::Data("coco8".into())]));
}

/// Rounds of 64 images with these speeds.
fn rounds(speeds: [f64; 3]) -> Vec<Rate> {
    speeds.map(|speed| Rate::new(64, 64.0 / speed)).to_vec()
}

fn together(speeds: [f64; 3]) -> Together {
    Together {
        training: rounds(speeds),
        training_images: 128,
        validation: rounds([20.0; 3]),
        validation_images: 40,
        memory: vec![1 << 30; 2],
    }
}

/// Tables of two rows: one device measured, two out of memory.
fn tables() -> Tables {
    let planned = plan(&Fixture::new(), &BenchOptions { imgsz: Some(320), ..scaling("cpu,cpu") }).unwrap();
    let mut tables = Tables::new(&planned.rows[0]).unwrap();
    tables.add(&planned.rows[0], Outcome::of(&together([16.0, 15.0, 18.0])));
    let message = "rank 1 of 2 failed: out of memory: 6.1 GiB could not be allocated, sorry".to_owned();
    tables.add(&planned.rows[1], Outcome::OutOfMemory { message });
    let batches = plan(&Fixture::new(), &batches("cpu,cpu", "4")).unwrap();
    for (row, speed) in batches.rows.iter().zip([10.0, 15.0]) {
        tables.add(row, Outcome::of(&Together { validation: Vec::new(), ..together([speed; 3]) }));
    }
    tables
}

/// Programs read this. A change that is not an addition needs a new version.
#[test]
fn the_json_has_the_documented_form() {
    let printed: serde_json::Value = serde_json::from_str(&tables().to_json()).unwrap();
    let batch_row = |devices: usize, threads: usize, speed: f64, seconds: f64, speed_up: f64| {
        json!({
            "devices": vec!["cpu"; devices], "batch": 4, "batch_per_device": 4 / devices,
            "threads_per_device": threads, "workers_per_device": 4 / devices, "status": "measured",
            "images_per_second": { "median": speed, "min": speed, "max": speed },
            "images": 128, "seconds": seconds, "memory": 1_u64 << 30, "speed_up": speed_up, "efficiency": speed_up
        })
    };
    let expected = json!({
        "version": 1,
        "program": env!("CARGO_PKG_VERSION"),
        "model": "yolov5n",
        "image_size": 320,
        "precision": "fp32",
        "source": "files",
        "rounds": 5,
        "interrupted": false,
        "scaling": [
            {
                "devices": ["cpu"], "batch": 16, "batch_per_device": 16, "threads_per_device": 8,
                "workers_per_device": 8, "status": "measured",
                "images_per_second": { "median": 16.0, "min": 15.0, "max": 18.0 },
                "images": 128, "seconds": 8.0,
                "validation_images_per_second": { "median": 20.0, "min": 20.0, "max": 20.0 },
                "validation_seconds": 2.0, "memory": 1_u64 << 30, "speed_up": 1.0, "efficiency": 1.0
            },
            {
                "devices": ["cpu", "cpu"], "batch": 32, "batch_per_device": 16, "threads_per_device": 4,
                "workers_per_device": 4, "status": "out-of-memory",
                "message": "rank 1 of 2 failed: out of memory: 6.1 GiB could not be allocated, sorry"
            }
        ],
        "batches": [batch_row(1, 8, 10.0, 12.8, 1.0), batch_row(2, 4, 15.0, 128.0 / 15.0, 1.5)]
    });
    assert_eq!(printed, expected);
}

#[test]
fn the_csv_has_a_line_per_run() {
    let csv = to_csv(&tables());
    let lines: Vec<&str> = csv.lines().collect();
    let expected = [
        "table,devices,device_names,batch,batch_per_device,threads_per_device,workers_per_device,status,\
         images_per_second,images_per_second_min,images_per_second_max,seconds_per_epoch,\
         validation_images_per_second,validation_seconds_per_epoch,memory_bytes,speed_up,efficiency,message",
        "scaling,1,cpu,16,16,8,8,measured,16.000,15.000,18.000,8.000,20.000,2.000,1073741824,1.0000,1.0000,",
        "scaling,2,cpu cpu,32,16,4,4,out-of-memory,,,,,,,,,,\
         \"rank 1 of 2 failed: out of memory: 6.1 GiB could not be allocated, sorry\"",
        "batches,1,cpu,4,4,8,4,measured,10.000,10.000,10.000,12.800,,,1073741824,1.0000,1.0000,",
        "batches,2,cpu cpu,4,2,4,2,measured,15.000,15.000,15.000,8.533,,,1073741824,1.5000,1.5000,",
    ];
    assert_eq!(lines, expected);
    assert!(csv.ends_with('\n'));
}

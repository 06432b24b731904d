//! Tables of `yolo bench` for tests: rows of runs that never took place, and the tables around them.

use yolo_plan::bench_report::Source;
use yolo_plan::bench_tables::{Outcome, Row, Tables, VERSION};

/// A row of this many times the same device.
pub(crate) fn row(device: &str, devices: usize, batch: usize, outcome: Outcome) -> Row {
    Row {
        devices: vec![device.to_owned(); devices],
        batch,
        batch_per_device: batch / devices,
        threads_per_device: 8 / devices,
        workers_per_device: 1,
        outcome,
    }
}

pub(crate) fn tables(scaling: Vec<Row>, batches: Vec<Row>) -> Tables {
    Tables {
        version: VERSION,
        program: "0.1.0".to_owned(),
        model: "yolov5l".to_owned(),
        image_size: 640,
        precision: "fp32",
        source: Source::Files,
        rounds: 3,
        interrupted: false,
        scaling,
        batches,
    }
}

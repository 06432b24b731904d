//! How many images per second training and validation reach, and what limits them, measured by
//! `yolo bench`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use yolo_base::format::count;

use super::largest_batch::{self, Found};
use super::{bench, original};
use crate::gpus::{Sampler, busy_share, peak_memory};
use crate::report::LIMIT;
use crate::stage_run::{StageRun, Stop};

/// One measurement: a model, a batch size, and which parts of `yolo bench`.
struct Cell {
    model: &'static str,
    batch: u32,
    precision: &'static str,
    parts: &'static str,
}

/// On a GPU: the loader and the validation once, training for each model, batch and precision.
const CELLS: [Cell; 7] = [
    Cell {
        model: "yolov5n",
        batch: 16,
        precision: "fp32",
        parts: "--training --synthetic --loader --validation",
    },
    Cell { model: "yolov5n", batch: 64, precision: "fp16", parts: "--training --synthetic" },
    Cell { model: "yolov5s", batch: 64, precision: "fp16", parts: "--training --synthetic" },
    Cell { model: "yolov5m", batch: 64, precision: "fp16", parts: "--training --synthetic" },
    Cell { model: "yolov5n", batch: 64, precision: "fp32", parts: "--training --synthetic" },
    Cell { model: "yolov5s", batch: 64, precision: "fp32", parts: "--training --synthetic" },
    Cell { model: "yolov5m", batch: 64, precision: "fp32", parts: "--training --synthetic" },
];

/// The unit of a phase.
const SHARE: &str = "% of the time";

/// A batch that must fit into the memory of every GPU.
const SMALLEST: u32 = 16;

/// What `--full` adds.
const FULL: [Cell; 6] = [
    Cell { model: "yolov5n", batch: 128, precision: "fp32", parts: "--training --synthetic --validation" },
    Cell { model: "yolov5s", batch: 16, precision: "fp32", parts: "--training --synthetic --validation" },
    Cell { model: "yolov5s", batch: 128, precision: "fp32", parts: "--training --synthetic" },
    Cell { model: "yolov5m", batch: 16, precision: "fp32", parts: "--training --synthetic --validation" },
    Cell { model: "yolov5m", batch: 128, precision: "fp32", parts: "--training --synthetic" },
    Cell { model: "yolov5l", batch: 64, precision: "fp32", parts: "--training --synthetic" },
];

/// In a rehearsal: every part once. `yolo` refuses fp16 on the CPU.
const REHEARSAL: [Cell; 2] = [
    Cell {
        model: "yolov5n",
        batch: 4,
        precision: "fp32",
        parts: "--training --synthetic --loader --validation",
    },
    Cell { model: "yolov5n", batch: 4, precision: "bf16", parts: "--training --synthetic" },
];

pub(super) fn run(stage: &mut StageRun<'_>) -> Result<(), Stop> {
    let scale = &stage.session.scale;
    let cells: Vec<&Cell> = match (scale.rehearsal, scale.full) {
        (true, _) => REHEARSAL.iter().collect(),
        (false, false) => CELLS.iter().collect(),
        (false, true) => CELLS.iter().chain(&FULL).collect(),
    };
    for cell in cells {
        measure(stage, cell)?;
    }
    largest_batch(stage)?;
    original::run(stage)
}

/// The speed with the largest batch that fits. Data sets may have fewer images, so it is measured on a
/// batch that stays on the device.
fn largest_batch(stage: &mut StageRun<'_>) -> Result<(), Stop> {
    if stage.time_left() < largest_batch::TIME_OF_A_TRIAL {
        stage.skip("a batch that fits is found", "the time of the stage is almost over");
        return Ok(());
    }
    let Some(Found { batch, too_large }) = largest_batch::find(stage)? else {
        stage.check("a batch that fits is found", false, "no batch fits");
        return Ok(());
    };
    let detail = match too_large {
        Some(too_large) => format!("{batch}; {too_large} does not fit"),
        None => format!("at least {batch}, the last one that was tried"),
    };
    stage.check("a batch that fits is found", true, detail);
    measure(stage, &Cell { model: "yolov5n", batch, precision: "fp32", parts: "--synthetic" })
}

/// How long a measurement takes at most: the start of the program, and for each part a warm-up and a pass for
/// the phases besides what is measured. The loader is measured with several numbers of threads.
fn expected_time(cell: &Cell, seconds: u32) -> Duration {
    let of = |part: &str| match part {
        "--loader" => 6,
        _ => 2,
    };
    let parts: u32 = cell.parts.split_whitespace().map(of).sum();
    Duration::from_secs((10 + parts * seconds).into())
}

fn measure(stage: &mut StageRun<'_>, cell: &Cell) -> Result<(), Stop> {
    let session = stage.session;
    let Cell { model, batch, precision, parts } = cell;
    let size = session.scale.of(640, 64);
    let seconds = session.scale.of(if session.scale.full { 8 } else { 4 }, 1);
    let name = format!("{model}, {size} px, batch {batch}, {precision}");
    if stage.time_left() < expected_time(cell, seconds) {
        stage.skip(name, "the time of the stage is almost over; `--only speed` has more");
        return Ok(());
    }
    let sampler = session.monitor.as_ref().map(|monitor| Sampler::start(Arc::clone(monitor)));
    let options = format!("{parts} --precision {precision}");
    let ended = stage.run(bench::invocation(session, model, size, *batch, seconds, &options))?;
    let samples = sampler.map(Sampler::finish).unwrap_or_default();
    if *batch > SMALLEST && bench::ran_out_of_memory(&ended) {
        stage.skip(name, "it does not fit into the memory of this GPU");
        return Ok(());
    }
    if !stage.check_success(format!("{name} is measured"), &ended) {
        return Ok(());
    }
    let report: Value = serde_json::from_str(&ended.stdout)
        .map_err(|error| Stop::Failed(format!("`yolo bench --json` printed no JSON: {error}")))?;
    let measurements = report["measurements"].as_array().cloned().unwrap_or_default();
    let wanted = parts.split_whitespace().count();
    let kinds: std::collections::BTreeSet<String> = measurements.iter().map(kind).collect();
    let found = kinds.into_iter().collect::<Vec<_>>();
    stage.check(format!("{name}: every part is measured"), found.len() == wanted, found.join(", "));
    if let Some(limit) = report["limit"].as_str() {
        stage.check(format!("{name}{LIMIT}"), true, format!("the {limit}"));
    }
    for measurement in &measurements {
        note(stage, &name, measurement, &samples);
    }
    if let Some(peak) = peak_memory(&samples) {
        stage.figure(format!("{name}: GPU memory"), peak as f64 / 1e9, "GB");
    }
    Ok(())
}

/// `training from files`, `loader`, `validation`.
fn kind(measurement: &Value) -> String {
    let text = |field: &str| measurement[field].as_str().unwrap_or_default().to_owned();
    match text("source").as_str() {
        "" => text("what"),
        source => format!("{} from {source} data", text("what")).replace("files data", "files"),
    }
}

/// Notes the rate, the busy share of the GPU, and the phases of one measurement.
fn note(stage: &mut StageRun<'_>, name: &str, measurement: &Value, samples: &[crate::gpus::Sample]) {
    let what = match (kind(measurement).as_str(), measurement["workers"].as_u64()) {
        ("loader", Some(workers)) => format!("{name}: loader alone, {}", count(workers as usize, "thread")),
        (kind, _) => format!("{name}: {kind}"),
    };
    let number = |field: &str| measurement[field].as_f64();
    if let Some(rate) = number("images_per_second") {
        stage.figure_of(&what, "speed", rate, "images/s");
    }
    if let (Some(began), Some(seconds)) = (number("began"), number("seconds"))
        && let Some(busy) = busy_share(samples, began, began + seconds)
    {
        stage.figure_of(&what, "GPU busy", busy * 100.0, "%");
    }
    if let Some(waits) = number("host_waits") {
        stage.figure_of(&what, "waits for the GPU", waits, "per step");
    }
    for (phase, share) in measurement["phases"].as_object().into_iter().flatten() {
        if let Some(share) = share.as_f64() {
            stage.figure_of(&what, phase, share * 100.0, SHARE);
        }
    }
}

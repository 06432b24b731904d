//! How many images per second training and validation reach, and what limits them, measured by
//! `yolo bench`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use yolo_base::format::count;

use super::largest_batch;
use super::limits::{Rates, cuda_graphs};
use super::{bench, original};
use crate::gpus::{Sampler, busy_share, peak_memory};
use crate::report::LIMIT;
use crate::stage_run::{StageRun, Stop};

/// One start of `yolo bench`: a model, a batch size, and which parts.
#[derive(Clone, Copy)]
struct Cell {
    model: &'static str,
    batch: u32,
    precision: &'static str,
    parts: &'static str,
    variant: Variant,
}

/// What is different from the defaults of `yolo bench`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    /// Nothing.
    Plain,
    /// Every image is decoded each time.
    FromFiles,
    /// All decoded images are kept in memory.
    FromMemory,
    /// libtorch uses its fastest algorithms. The difference from the others is what determinism costs.
    Nondeterministic,
}

impl Variant {
    fn option(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::FromFiles => " --cache none",
            Self::FromMemory => " --cache ram",
            Self::Nondeterministic => " --nondeterministic",
        }
    }

    /// Where the images of training come from.
    fn source(self) -> &'static str {
        if self == Self::FromMemory { "memory" } else { "files" }
    }

    /// What the report says of it.
    fn remark(self) -> &'static str {
        match self {
            Self::Plain | Self::FromFiles => "",
            Self::FromMemory => ", --cache ram",
            Self::Nondeterministic => ", nondeterministic",
        }
    }
}

/// A measurement from files, as all are that say nothing else.
const fn cell(model: &'static str, batch: u32, precision: &'static str, parts: &'static str) -> Cell {
    Cell { model, batch, precision, parts, variant: Variant::FromFiles }
}

const fn nondeterministic(model: &'static str, batch: u32, precision: &'static str) -> Cell {
    Cell { model, batch, precision, parts: "--synthetic", variant: Variant::Nondeterministic }
}

/// Validation, and the loader with one batch of each size that is compared with it.
const FIRST: [Cell; 2] = [
    cell("yolov5n", 16, "fp32", "--training --synthetic --loader --validation"),
    cell("yolov5n", COMPARED, "fp32", "--loader"),
];

/// The batch with which models and precisions are compared.
const COMPARED: u32 = 64;

/// The models and precisions whose training is compared with the loader and the network alone, on a GPU.
const MODELS: [(&str, &str); 6] = [
    ("yolov5n", "fp16"),
    ("yolov5s", "fp16"),
    ("yolov5m", "fp16"),
    ("yolov5n", "fp32"),
    ("yolov5s", "fp32"),
    ("yolov5m", "fp32"),
];

/// What determinism costs.
const FASTEST: [Cell; 2] = [nondeterministic("yolov5n", 64, "fp16"), nondeterministic("yolov5s", 64, "fp16")];

/// The unit of a phase.
const SHARE: &str = "% of the time";

/// A batch that must fit into the memory of every GPU.
const SMALLEST: u32 = 16;

/// What `--full` adds.
const FULL: [Cell; 6] = [
    cell("yolov5n", 128, "fp32", "--training --synthetic --validation"),
    cell("yolov5s", 16, "fp32", "--training --synthetic --validation"),
    cell("yolov5s", 128, "fp32", "--training --synthetic"),
    cell("yolov5m", 16, "fp32", "--training --synthetic --validation"),
    cell("yolov5m", 128, "fp32", "--training --synthetic"),
    cell("yolov5l", 64, "fp32", "--training --synthetic"),
];

/// In a rehearsal: every part once. `yolo` refuses fp16 on the CPU.
const REHEARSAL: [Cell; 2] = [
    cell("yolov5n", 4, "fp32", "--training --synthetic --loader --validation"),
    nondeterministic("yolov5n", 4, "bf16"),
];

pub(super) fn run(stage: &mut StageRun<'_>) -> Result<(), Stop> {
    let scale = &stage.session.scale;
    if scale.rehearsal {
        let [first, fastest] = &REHEARSAL;
        let found = measure(stage, first)?;
        compare(stage, "yolov5n", first.batch, "fp32", found.and_then(|found| found.rate("loader")))?;
        measure(stage, fastest)?;
    } else {
        let full = scale.full;
        let mut loader = None;
        for cell in &FIRST {
            let found = measure(stage, cell)?;
            loader = found.and_then(|found| found.rate("loader"));
        }
        for (model, precision) in MODELS {
            compare(stage, model, COMPARED, precision, loader)?;
        }
        for cell in FASTEST.iter().chain(FULL.iter().filter(|_| full)) {
            measure(stage, cell)?;
        }
    }
    largest_batch(stage)?;
    original::run(stage)
}

/// Measures training from files, from memory and on synthetic data, and compares them with the network and the
/// loader alone.
fn compare(
    stage: &mut StageRun<'_>,
    model: &'static str,
    batch: u32,
    precision: &'static str,
    loader: Option<f64>,
) -> Result<(), Stop> {
    let files = cell(model, batch, precision, "--training --synthetic");
    let memory = Cell { parts: "--training", variant: Variant::FromMemory, ..files };
    let Some(from_files) = measure(stage, &files)? else { return Ok(()) };
    let Some(from_memory) = measure(stage, &memory)? else { return Ok(()) };
    let rates = Rates {
        synthetic: from_files.rate("training on synthetic data"),
        loader,
        from_files: from_files.rate("training from files"),
        from_memory: from_memory.rate("training from memory"),
        busy: from_memory.busy,
    };
    for verdict in rates.verdicts() {
        let what = format!("{}: {}", name(stage, &files), verdict.what);
        if stage.session.scale.rehearsal {
            stage.skip(what, "on the CPU, the loader and the network share the cores");
        } else {
            stage.check(what, verdict.is_so, verdict.detail);
        }
    }
    Ok(())
}

/// The speed with the largest batch that fits. Data sets may have fewer images, so it is measured on a
/// batch that stays on the device.
fn largest_batch(stage: &mut StageRun<'_>) -> Result<(), Stop> {
    if stage.time_left() < largest_batch::TIME_OF_A_TRIAL {
        stage.skip("a batch that fits is found", "the time of the stage is almost over");
        return Ok(());
    }
    let Some(largest_batch::Found { batch, too_large }) = largest_batch::find(stage)? else {
        stage.check("a batch that fits is found", false, "no batch fits");
        return Ok(());
    };
    let detail = match too_large {
        Some(too_large) => format!("{batch}; {too_large} does not fit"),
        None => format!("at least {batch}, the last one that was tried"),
    };
    stage.check("a batch that fits is found", true, detail);
    let largest = Cell { variant: Variant::Plain, ..cell("yolov5n", batch, "fp32", "--synthetic") };
    measure(stage, &largest).map(drop)
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

/// What one start of `yolo bench` found.
struct Found {
    /// The kind of each measurement, and its images per second. The loader's is that with the most threads.
    rates: Vec<(String, f64)>,
    /// The share of the time of training from files or memory in which the GPU computed.
    busy: Option<f64>,
}

impl Found {
    fn rate(&self, kind: &str) -> Option<f64> {
        self.rates.iter().rev().find(|(other, _)| other == kind).map(|(_, rate)| *rate)
    }
}

/// The name of a measurement in the report.
fn name(stage: &StageRun<'_>, cell: &Cell) -> String {
    let size = stage.session.scale.of(640, 64);
    let Cell { model, batch, precision, variant, .. } = cell;
    format!("{model}, {size} px, batch {batch}, {precision}{}", variant.remark())
}

/// Measures, and notes all figures. Nothing is returned if the time is over or the batch does not fit.
fn measure(stage: &mut StageRun<'_>, cell: &Cell) -> Result<Option<Found>, Stop> {
    let session = stage.session;
    let Cell { model, batch, precision, parts, variant } = cell;
    let size = session.scale.of(640, 64);
    let seconds = session.scale.of(if session.scale.full { 8 } else { 4 }, 1);
    let name = name(stage, cell);
    if stage.time_left() < expected_time(cell, seconds) {
        stage.skip(name, "the time of the stage is almost over; `--only speed` has more");
        return Ok(None);
    }
    let sampler = session.monitor.as_ref().map(|monitor| Sampler::start(Arc::clone(monitor)));
    let options = format!("{parts} --precision {precision}{}", variant.option());
    let ended = stage.run(bench::invocation(session, model, size, *batch, seconds, &options))?;
    let samples = sampler.map(Sampler::finish).unwrap_or_default();
    if *batch > SMALLEST && bench::ran_out_of_memory(&ended) {
        stage.skip(name, "it does not fit into the memory of this GPU");
        return Ok(None);
    }
    if !stage.check_success(format!("{name} is measured"), &ended) {
        return Ok(None);
    }
    let report: Value = serde_json::from_str(&ended.stdout)
        .map_err(|error| Stop::Failed(format!("`yolo bench --json` printed no JSON: {error}")))?;
    let measurements = report["measurements"].as_array().cloned().unwrap_or_default();
    let wanted = parts.split_whitespace().count();
    let kinds: std::collections::BTreeSet<String> =
        measurements.iter().map(|measurement| kind(measurement, *variant)).collect();
    let found = kinds.into_iter().collect::<Vec<_>>();
    stage.check(format!("{name}: every part is measured"), found.len() == wanted, found.join(", "));
    if let Some(limit) = report["limit"].as_str() {
        stage.check(format!("{name}{LIMIT}"), true, format!("the {limit}"));
    }
    let mut found = Found { rates: Vec::new(), busy: None };
    for measurement in &measurements {
        let kind = kind(measurement, *variant);
        let busy = note(stage, (&name, &kind), measurement, &samples);
        if kind.starts_with("training from") && kind.ends_with(variant.source()) {
            found.busy = busy;
        }
        found.rates.extend(measurement["images_per_second"].as_f64().map(|rate| (kind, rate)));
    }
    if let Some(peak) = peak_memory(&samples) {
        stage.figure(format!("{name}: GPU memory"), peak as f64 / 1e9, "GB");
    }
    Ok(Some(found))
}

/// `training from files`, `training from memory`, `loader`, `validation`.
fn kind(measurement: &Value, variant: Variant) -> String {
    let text = |field: &str| measurement[field].as_str().unwrap_or_default().to_owned();
    match text("source").as_str() {
        "" => text("what"),
        source => format!("{} from {source} data", text("what")).replace("files data", variant.source()),
    }
}

/// Notes the rate, the busy share of the GPU, which is returned, and the phases of one measurement.
fn note(
    stage: &mut StageRun<'_>,
    (name, kind): (&str, &str),
    measurement: &Value,
    samples: &[crate::gpus::Sample],
) -> Option<f64> {
    let what = match (kind, measurement["workers"].as_u64()) {
        ("loader", Some(workers)) => format!("{name}: loader alone, {}", count(workers as usize, "thread")),
        (kind, _) => format!("{name}: {kind}"),
    };
    let number = |field: &str| measurement[field].as_f64();
    if let Some(rate) = number("images_per_second") {
        stage.figure_of(&what, "speed", rate, "images/s");
    }
    let busy = number("began")
        .zip(number("seconds"))
        .and_then(|(began, seconds)| busy_share(samples, began, began + seconds));
    if let Some(busy) = busy {
        stage.figure_of(&what, "GPU busy", busy * 100.0, "%");
    }
    if let Some(waits) = number("host_waits") {
        stage.figure_of(&what, "waits for the GPU", waits, "per step");
    }
    let graphs = format!("{what}: what CUDA graphs would gain");
    if let Some(share) = number("launch_share") {
        stage.figure_of(&what, "launching", share * 100.0, SHARE);
        stage.check(graphs, true, cuda_graphs(share));
    } else if kind.ends_with("synthetic data") && stage.session.scale.rehearsal {
        stage.skip(graphs, "on the CPU, nothing is launched");
    }
    for (phase, share) in measurement["phases"].as_object().into_iter().flatten() {
        if let Some(share) = share.as_f64() {
            stage.figure_of(&what, phase, share * 100.0, SHARE);
        }
    }
    busy
}

//! Measures one cell: starts `yolo bench`, watches the GPU meanwhile, and notes all figures.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use yolo_base::format::count;

use super::bench;
use super::cells::{Cell, Kind, Part, SMALLEST, Variant, seconds};
use super::limits::cuda_graphs;
use crate::gpus::{Busy, Sample, Sampler, busy, peak_memory};
use crate::report::LIMIT;
use crate::stage_run::{StageRun, Stop};

/// The unit of a phase.
const SHARE: &str = "% of the time";

/// Whether the stage passes without a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// No: what is not measured is not finished.
    Required,
    /// Yes.
    IfTimeRemains,
}

/// How the measurement of a cell ended.
#[derive(Debug)]
pub(super) enum Measured {
    Found(Found),
    /// The time of the stage does not suffice. It is noted.
    NoTime,
    /// The batch does not fit into the memory of this GPU. It is noted.
    NoRoom,
    /// A check failed.
    Failed,
}

/// What one start of `yolo bench` found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Images per second.
    rates: Vec<(Kind, f64)>,
    /// How busy the GPU was in each measurement.
    busy: Vec<(Kind, Busy)>,
}

impl Found {
    /// Images per second of this kind, if it was measured.
    pub(super) fn rate(&self, kind: Kind) -> Option<f64> {
        self.rates.iter().find(|(other, _)| *other == kind).map(|(_, rate)| *rate)
    }

    /// How busy the GPU was meanwhile.
    pub(super) fn busy(&self, kind: Kind) -> Busy {
        self.busy.iter().find(|(other, _)| *other == kind).map_or(Busy::NotSampled, |(_, busy)| *busy)
    }
}

impl Measured {
    /// What was found, if anything was.
    pub(super) fn found(&self) -> Option<&Found> {
        match self {
            Self::Found(found) => Some(found),
            Self::NoTime | Self::NoRoom | Self::Failed => None,
        }
    }
}

/// The name of a cell in the report.
pub(super) fn name(stage: &StageRun<'_>, cell: &Cell) -> String {
    let size = stage.session.scale.of(640, 64);
    let Cell { model, batch, precision, variant, .. } = cell;
    format!("{model}, {size} px, batch {batch}, {precision}{}", variant.remark())
}

/// Notes that time does not suffice for a cell.
pub(super) fn no_time(stage: &mut StageRun<'_>, cell: &Cell, need: Need) -> Measured {
    let name = name(stage, cell);
    let why = "the time of the stage is almost over; `--only speed` with a higher --limit has more";
    match need {
        Need::Required => stage.unfinished(format!("{name} is measured"), why),
        Need::IfTimeRemains => stage.skip(format!("{name} is measured"), why),
    }
    Measured::NoTime
}

/// Measures, and notes all figures.
pub(super) fn measure(stage: &mut StageRun<'_>, cell: &Cell, need: Need) -> Result<Measured, Stop> {
    let session = stage.session;
    let (size, seconds) = (session.scale.of(640, 64), seconds(&session.scale));
    if stage.time_left() < cell.expected_time(seconds) {
        return Ok(no_time(stage, cell, need));
    }
    let name = name(stage, cell);
    let sampler = session.monitor.as_ref().map(|monitor| Sampler::start(Arc::clone(monitor)));
    let ended =
        stage.run(bench::invocation(session, cell.model, size, cell.batch, seconds, &cell.options()))?;
    let samples = sampler.map(Sampler::finish).unwrap_or_default();
    if cell.batch > SMALLEST && bench::ran_out_of_memory(&ended) {
        stage.skip(name, "it does not fit into the memory of this GPU");
        return Ok(Measured::NoRoom);
    }
    if !stage.check_success(format!("{name} is measured"), &ended) {
        return Ok(Measured::Failed);
    }
    let report: Value = serde_json::from_str(&ended.stdout)
        .map_err(|error| Stop::Failed(format!("`yolo bench --json` printed no JSON: {error}")))?;
    let found = note_all(stage, cell, &name, &report, &samples);
    if let Some(peak) = peak_memory(&samples) {
        stage.figure(format!("{name}: GPU memory"), peak as f64 / 1e9, "GB");
    }
    Ok(Measured::Found(found))
}

/// Notes every measurement of a report, and checks that none is missing.
fn note_all(stage: &mut StageRun<'_>, cell: &Cell, name: &str, report: &Value, samples: &[Sample]) -> Found {
    let measurements = report["measurements"].as_array().cloned().unwrap_or_default();
    let mut found = Found::default();
    for measurement in &measurements {
        let Some(kind) = kind(measurement, cell.variant) else { continue };
        let busy = note(stage, (name, kind), measurement, samples);
        found.busy.push((kind, busy));
        let rate = measurement["images_per_second"].as_f64().filter(|rate| *rate > 0.0);
        found.rates.extend(rate.map(|rate| (kind, rate)));
    }
    let kinds: BTreeSet<Kind> = found.rates.iter().map(|(kind, _)| *kind).collect();
    let wanted: BTreeSet<Kind> = cell.parts.iter().map(|&part| cell.kind(part)).collect();
    let names = kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
    stage.check(format!("{name}: every part is measured"), kinds == wanted, names);
    if cell.parts.contains(&Part::Loader) && cell.parts.contains(&Part::Synthetic) {
        let limit = report["limit"].as_str();
        let detail = limit.map_or_else(|| "not reported".to_owned(), |limit| format!("the {limit}"));
        stage.check(format!("{name}{LIMIT}"), limit.is_some(), detail);
    }
    found
}

/// What a measurement is of; `None` if the kit does not know it.
fn kind(measurement: &Value, variant: Variant) -> Option<Kind> {
    let text = |field: &str| measurement[field].as_str().unwrap_or_default();
    match (text("what"), text("source")) {
        ("training", "synthetic") => Some(Kind::Synthetic),
        ("training", "files") if variant == Variant::FromMemory => Some(Kind::Memory),
        ("training", "files") => Some(Kind::Files),
        ("loader", _) => Some(Kind::Loader),
        ("validation", _) => Some(Kind::Validation),
        _ => None,
    }
}

/// Notes the rate, the busy share of the GPU, which is returned, the waits and the phases of one measurement.
fn note(
    stage: &mut StageRun<'_>,
    (name, kind): (&str, Kind),
    measurement: &Value,
    samples: &[Sample],
) -> Busy {
    let what = match (kind, measurement["workers"].as_u64()) {
        (Kind::Loader, Some(workers)) => {
            format!("{name}: {}, {}", kind.name(), count(workers as usize, "thread"))
        }
        _ => format!("{name}: {}", kind.name()),
    };
    let number = |field: &str| measurement[field].as_f64();
    if let Some(rate) = number("images_per_second") {
        stage.figure_of(&what, "speed", rate, "images/s");
    }
    let busy = match number("began").zip(number("seconds")) {
        Some((began, seconds)) => busy(samples, began, began + seconds),
        None => Busy::NotSampled,
    };
    if let Busy::Share(share) = busy {
        stage.figure_of(&what, "GPU busy", share * 100.0, "%");
    }
    if kind.is_training() {
        waits(stage, &what, number("host_waits"));
    }
    if kind == Kind::Synthetic {
        graphs(stage, &what, number("launch_share"));
    }
    for (phase, share) in measurement["phases"].as_object().into_iter().flatten() {
        if let Some(share) = share.as_f64() {
            stage.figure_of(&what, phase, share * 100.0, SHARE);
        }
    }
    busy
}

/// A GPU idles after each wait of the CPU until it has new work, so a step must have none.
fn waits(stage: &mut StageRun<'_>, what: &str, waits: Option<f64>) {
    let check = format!("{what}: no step waits for the GPU");
    if stage.session.scale.rehearsal {
        stage.skip(check, "there is no GPU in a rehearsal");
        return;
    }
    let detail =
        waits.map_or_else(|| "not reported".to_owned(), |waits| format!("{waits:.2} waits per step"));
    stage.check(check, waits == Some(0.0), detail);
    if let Some(waits) = waits {
        stage.figure_of(what, "waits for the GPU", waits, "per step");
    }
}

/// Whether CUDA graphs would pay.
fn graphs(stage: &mut StageRun<'_>, what: &str, launch_share: Option<f64>) {
    let check = format!("{what}: what CUDA graphs would gain");
    match launch_share {
        Some(share) => {
            stage.figure_of(what, "launching", share * 100.0, SHARE);
            stage.check(check, true, cuda_graphs(share));
        }
        None if stage.session.scale.rehearsal => stage.skip(check, "on the CPU, nothing is launched"),
        None => drop(stage.check(check, false, "not reported")),
    }
}

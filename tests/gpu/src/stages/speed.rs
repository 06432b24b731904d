//! How many images per second training and validation reach, and what limits them, measured by
//! `yolo bench`. What must be proven comes first, and if time does not suffice for it, the stage is not
//! finished; the rest is measured if time remains.

use std::time::Duration;

use super::cells::{
    COMPARED, Cell, EXTRA, FASTEST, FULL, Kind, LOADER, MODELS, Part, REHEARSAL, Variant, cell, comparison,
    seconds,
};
use super::largest_batch::{self, Search};
use super::limits::Rates;
use super::measured::{Measured, Need, measure, name, no_time};
use crate::stage_run::{StageRun, Stop};

/// The part of the time that is left in which the largest batch is searched. The rest is for the other cells.
const SEARCH_PART: u32 = 2;
/// The longest search.
const LONGEST_SEARCH: Duration = Duration::from_secs(120);

pub(super) fn run(stage: &mut StageRun<'_>) -> Result<(), Stop> {
    let scale = &stage.session.scale;
    if scale.rehearsal {
        let [first, fastest] = &REHEARSAL;
        let found = measure(stage, first, Need::Required)?;
        let loader = found.found().and_then(|found| found.rate(Kind::Loader));
        compare(stage, first.model, first.batch, "fp32", loader)?;
        measure(stage, fastest, Need::Required)?;
        return largest_batch(stage);
    }
    let full = scale.full;
    let loader = measure(stage, &LOADER, Need::Required)?;
    let loader = loader.found().and_then(|found| found.rate(Kind::Loader));
    for (model, precision) in MODELS {
        compare(stage, model, COMPARED, precision, loader)?;
    }
    for cell in &FASTEST {
        measure(stage, cell, Need::Required)?;
    }
    largest_batch(stage)?;
    for cell in EXTRA.iter().chain(FULL.iter().filter(|_| full)) {
        measure(stage, cell, Need::IfTimeRemains)?;
    }
    Ok(())
}

/// Measures training from files, from memory and on synthetic data, and compares them with the network and the
/// loader alone. Every verdict is noted, whatever could be measured.
fn compare(
    stage: &mut StageRun<'_>,
    model: &'static str,
    batch: u32,
    precision: &'static str,
    loader: Option<f64>,
) -> Result<(), Stop> {
    let cells = comparison(model, batch, precision);
    let [files, memory] = measure_both(stage, &cells)?;
    let rate = |of: &Measured, kind| of.found().and_then(|found| found.rate(kind));
    let rates = Rates {
        synthetic: rate(&files, Kind::Synthetic),
        loader,
        from_files: rate(&files, Kind::Files),
        from_memory: rate(&memory, Kind::Memory),
        busy: memory.found().map(|found| found.busy(Kind::Memory)).unwrap_or_default(),
    };
    let has_room = !matches!((&files, &memory), (Measured::NoRoom, _) | (_, Measured::NoRoom));
    for verdict in rates.verdicts() {
        let what = format!("{}: {}", name(stage, &cells[0]), verdict.what);
        if stage.session.scale.rehearsal {
            stage.skip(what, "on the CPU, the loader and the network share the cores");
        } else if has_room {
            stage.note(what, verdict.outcome, verdict.detail);
        } else {
            stage.skip(what, "it does not fit into the memory of this GPU");
        }
    }
    Ok(())
}

/// The second cell is of no use without the first, and the first is of little use without the second.
fn measure_both(stage: &mut StageRun<'_>, [files, memory]: &[Cell; 2]) -> Result<[Measured; 2], Stop> {
    let seconds = seconds(&stage.session.scale);
    if stage.time_left() < files.expected_time(seconds) + memory.expected_time(seconds) {
        return Ok([files, memory].map(|cell| no_time(stage, cell, Need::Required)));
    }
    Ok(match measure(stage, files, Need::Required)? {
        found @ Measured::Found(_) => [found, measure(stage, memory, Need::Required)?],
        Measured::NoTime => [Measured::NoTime, Measured::NoTime],
        Measured::NoRoom => [Measured::NoRoom, Measured::NoRoom],
        Measured::Failed => [Measured::Failed, Measured::Failed],
    })
}

/// The speed with the largest batch that fits. Data sets may have fewer images, so it is measured on a
/// batch that stays on the device.
fn largest_batch(stage: &mut StageRun<'_>) -> Result<(), Stop> {
    let what = "a batch that fits is found";
    let time = LONGEST_SEARCH.min(stage.time_left() / SEARCH_PART);
    let (batch, detail) = match largest_batch::find(stage, time)? {
        Search { best: None, is_over: false, .. } => {
            stage.skip(what, "the time of the stage is almost over");
            return Ok(());
        }
        Search { best: None, is_over: true, .. } => {
            stage.check(what, false, "no batch fits");
            return Ok(());
        }
        Search { best: Some(batch), too_large: Some(too_large), .. } => {
            (batch, format!("{batch}; {too_large} does not fit"))
        }
        Search { best: Some(batch), too_large: None, .. } => {
            (batch, format!("at least {batch}, the last one that was tried"))
        }
    };
    stage.check(what, true, detail);
    let largest =
        Cell { variant: Variant::Plain, ..cell(largest_batch::MODEL, batch, "fp32", &[Part::Synthetic]) };
    measure(stage, &largest, Need::IfTimeRemains).map(drop)
}

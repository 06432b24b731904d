//! `yolo train --batch -1`: measures before a run how much memory small batches need on its GPUs, and chooses the batch
//! that fits. The run is then planned with this number, so a resumed one has the same.

use yolo_base::format::count;
use yolo_plan::RunPlan;
use yolo_plan::auto_batch::{AUTO, BatchMemory};
use yolo_plan::bench_report::Measurement;
use yolo_plan::device::Inventory;
use yolo_plan::options::TrainOptions;
use yolo_plan::run::{BatchMeasurement, plan_batch_memory};

use super::before_training::{self, Measured};
use super::log_folder;
use crate::error::CommandError;
use crate::launch::Programs;
use crate::printer::Printer;

/// Whether the options ask for it.
pub(super) fn wanted(options: &TrainOptions) -> bool {
    options.batch_size == Some(AUTO)
}

/// Measures the batch over all ranks of the run, and says it in one line; `None` if there is nothing to measure,
/// because the run uses no GPU.
pub(super) fn choose(
    plan: &RunPlan,
    inventory: &Inventory,
    programs: &Programs,
    printer: &Printer,
) -> Result<Measured<Option<usize>>, CommandError> {
    let folder = log_folder::create("yolo-batch-")?;
    let Some(measurement) = plan_batch_memory(plan, inventory, folder.path().to_owned()) else {
        return Ok(Measured::Result(None));
    };
    printer.say(format_args!(
        "--batch -1: measuring how much memory small batches need on {}",
        measurement.device
    ));
    let measurements = match before_training::measure(&measurement.plan, folder, programs, printer)? {
        Measured::Result(measurements) => measurements,
        Measured::Interrupted { killed } => return Ok(Measured::Interrupted { killed }),
    };
    let (total, text) = total(&measurement, &measurements, inventory)?;
    printer.say(text);
    Ok(Measured::Result(Some(total)))
}

/// The batch over all ranks, and the line that says so.
fn total(
    measurement: &BatchMeasurement,
    measurements: &[Measurement],
    inventory: &Inventory,
) -> Result<(usize, String), CommandError> {
    let BatchMeasurement { device, sharing, parts, unit, .. } = measurement;
    let memory = |measurement: &Measurement| match measurement {
        Measurement::Memory(memory) => Some(memory.clone()),
        _ => None,
    };
    let memory =
        measurements.iter().find_map(memory).ok_or_else(|| before_training::no_result("--batch -1"))?;
    // The rank knows better than the driver did before it started.
    let known = Some(memory.available).filter(|bytes| *bytes > 0).or_else(|| inventory.free_memory(*device));
    let memory = BatchMemory { available: known.unwrap_or(0), ..memory };
    let batch = memory.largest_batch(*sharing, *unit)?;
    let total = batch.images * parts;
    let each = if *parts > 1 {
        format!(", {} for each of {parts} ranks or devices", batch.images)
    } else {
        String::new()
    };
    let text =
        format!("--batch -1: {} per step{each}, {} on {device}", count(total, "image"), batch.reason());
    Ok((total, text))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;
    use yolo_plan::auto_batch::MemoryOfBatch;
    use yolo_plan::device::{Device, Gpu};

    use super::*;

    const MIB: u64 = 1 << 20;

    /// A measurement for four replicas, of which two are on GPU 1. No test needs the plan's task.
    fn measurement() -> BatchMeasurement {
        let plan: RunPlan = serde_json::from_value(json!({
            "version": 2, "program": "0", "run_dir": PathBuf::from("runs"),
            "ranks": { "devices": [{ "cuda": 1 }], "world_size": 1, "backend": null, "threads": 1 },
            "task": { "kind": "probe", "part": "everything", "images": [], "pinned": 0, "load": 0 }
        }))
        .unwrap();
        BatchMeasurement { plan, device: Device::Cuda(1), sharing: 2, parts: 4, unit: 1 }
    }

    fn report(available: u64) -> Vec<Measurement> {
        let batch = |images| MemoryOfBatch { images, bytes: (500 + 100 * images as u64) * MIB };
        let batches = [1, 2, 4].into_iter().map(batch).collect();
        vec![Measurement::Memory(BatchMemory { batches, ran_out_at: None, available })]
    }

    #[test]
    fn every_rank_gets_what_fits_where_least_is_free() {
        let (total, text) = total(&measurement(), &report(10_040 * MIB), &Inventory::default()).unwrap();
        assert_eq!(total, 4 * 35);
        assert_eq!(
            text,
            "--batch -1: 140 images per step, 35 for each of 4 ranks or devices, which needs about 3.9 GiB of the \
             3.9 GiB that training may take, 80 % of what is free on CUDA device 1"
        );
    }

    #[test]
    fn the_driver_says_what_is_free_if_the_rank_does_not() {
        let gpu = Gpu { index: 1, memory: 16_000 * MIB, free: 10_040 * MIB, ..Gpu::default() };
        let inventory = Inventory { gpus: vec![gpu], ..Inventory::default() };
        assert_eq!(total(&measurement(), &report(0), &inventory).unwrap().0, 4 * 35);
        let unknown = total(&measurement(), &report(0), &Inventory::default()).unwrap_err();
        assert!(unknown.to_string().contains("does not report how much memory"), "{unknown}");
    }

    #[test]
    fn a_trainer_that_reports_nothing_is_an_error() {
        let error = total(&measurement(), &[], &Inventory::default()).unwrap_err();
        assert!(error.to_string().contains("ended without a result"), "{error}");
    }
}

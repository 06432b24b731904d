//! The plans of `yolo bench --scaling` and `--batches`: one run per row of a table, each planned as
//! `yolo train` plans it. All are decided before the first one starts.

use super::bench::seconds;
use super::planning::Need;
use super::train::{TrainTask, plan_train, sync_bn_advice};
use super::{BenchPart, BenchTask, PlanContext, Planning, RunPlan, Task};
use crate::device::{self, Device, argument};
use crate::error::PlanError;
use crate::options::{BenchOptions, Workers};

/// Images per training step and device if `--batch` is not given.
const BATCH: i64 = 16;
/// A larger batch is a typo.
const MAX_BATCH: usize = 1 << 20;
/// Repetitions of which a table shows the median.
const ROUNDS: usize = 5;
/// The devices that `--batches` compares with one.
const PAIR: usize = 2;

/// The runs of the tables, in the order in which they are made.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedTables {
    /// The rows.
    pub rows: Vec<PlannedRow>,
    /// As in [`Planned`](super::Planned).
    pub warnings: Vec<String>,
    /// As in [`Planned`](super::Planned).
    pub notes: Vec<String>,
}

/// The run of a row. Its devices and its batch are in the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedRow {
    /// The table that it is part of.
    pub table: Table,
    /// The run.
    pub plan: RunPlan,
}

/// A table of `yolo bench`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// One row per number of devices, each with the same batch per device.
    Scaling,
    /// One row per batch size, on one and on two devices.
    Batches,
}

/// The result of planning.
#[derive(Debug, Clone, PartialEq)]
pub enum TablesPlanning {
    /// The runs are decided.
    Ready(Box<PlannedTables>),
    /// Files are missing that can be fetched or generated.
    Missing(Vec<Need>),
}

/// Plans the tables that the options name.
///
/// # Errors
/// The first mistake in the options, or in a file that they name.
pub fn plan_bench_tables(options: &BenchOptions, context: &PlanContext) -> Result<TablesPlanning, PlanError> {
    let seconds = seconds(options)?;
    if options.workers == Some(Workers::Auto) {
        return Err(PlanError::usage("--workers auto does not go together with --scaling or --batches")
            .with_hint(
                "run `yolo bench --workers auto` first, and then give the number that it recommends",
            ));
    }
    let devices = devices(options, context)?;
    let mut wanted: Vec<(Table, usize, i64)> = Vec::new();
    if options.scaling {
        let each = options.batch_size.unwrap_or(BATCH);
        crate::batch::check(each, 1)?;
        let row = |count: usize| (Table::Scaling, count, each.saturating_mul(count as i64));
        wanted.extend(counts(devices.len()).into_iter().map(row));
    }
    if let Some(list) = &options.batches {
        let sizes = sizes(list, devices.len())?;
        for count in 1..=PAIR.min(devices.len()) {
            wanted.extend(sizes.iter().map(|&size| (Table::Batches, count, size as i64)));
        }
    }
    let source = if options.synthetic { BenchPart::Synthetic } else { BenchPart::Training };
    let mut tables = PlannedTables { rows: Vec::new(), warnings: Vec::new(), notes: Vec::new() };
    for (table, count, batch) in wanted {
        let mut parts = vec![source];
        parts.extend((table == Table::Scaling).then_some(BenchPart::Validation));
        let mut train = options.as_train();
        train.device = Some(argument(&devices[..count]));
        train.batch_size = Some(batch);
        let mut planned = match plan_train(&train, context)? {
            Planning::Ready(planned) => planned,
            Planning::Missing(needs) => return Ok(TablesPlanning::Missing(needs)),
        };
        if let Task::Train(training) = &planned.plan.task {
            let training = TrainTask::clone(training);
            // The advice is for a run, and not for a measurement with all sizes.
            let advice = sync_bn_advice(false, &training.shares(count));
            planned.notes.retain(|note| Some(note) != advice.as_ref());
            let task = BenchTask {
                training,
                parts,
                seconds,
                rounds: ROUNDS,
                choose_workers: false,
                most_workers: false,
            };
            planned.plan.task = Task::Bench(Box::new(task));
        }
        add_new(&mut tables.warnings, planned.warnings);
        add_new(&mut tables.notes, planned.notes);
        tables.rows.push(PlannedRow { table, plan: planned.plan });
    }
    Ok(TablesPlanning::Ready(Box::new(tables)))
}

/// The devices of `--device`, or all GPUs that can be used, or the CPU.
fn devices(options: &BenchOptions, context: &PlanContext) -> Result<Vec<Device>, PlanError> {
    let choose = |device| Ok(device::choose(device, None, &context.inventory)?.devices);
    let named = options.device.as_deref().filter(|device| !device.trim().is_empty());
    match choose(named)?.as_slice() {
        [Device::Cuda(_) | Device::Mig { .. }] if named.is_none() => choose(Some("all")),
        chosen => Ok(chosen.to_vec()),
    }
}

/// 1, 2, 4 and so on, and `all` itself.
fn counts(all: usize) -> Vec<usize> {
    let doubled = std::iter::successors(Some(1_usize), |count| count.checked_mul(2));
    doubled.take_while(|&count| count < all).chain([all]).collect()
}

/// The batch sizes of `--batches`, ascending, because memory that runs out ends a series.
fn sizes(list: &str, devices: usize) -> Result<Vec<usize>, PlanError> {
    let number = |text: &str| {
        let found = text.trim().parse().ok().filter(|size| (1..=MAX_BATCH).contains(size));
        found.ok_or_else(|| {
            PlanError::usage(format!("--batches {list}: \"{}\" is not a number of images", text.trim()))
                .with_hint(
                    "give the sizes with commas, for example --batches 8,16,32, or no value for 4 to 512",
                )
        })
    };
    let mut sizes = list.split(',').map(number).collect::<Result<Vec<usize>, _>>()?;
    sizes.sort_unstable();
    sizes.dedup();
    let odd = sizes.iter().find(|size| devices >= PAIR && **size % PAIR != 0);
    if let Some(odd) = odd {
        let message = format!("--batches {list}: {odd} images cannot be divided between two devices");
        return Err(PlanError::usage(message).with_hint("give even sizes, or a single --device"));
    }
    Ok(sizes)
}

/// Appends what is not yet there: most rows have the same notes.
fn add_new(texts: &mut Vec<String>, new: Vec<String>) {
    for text in new {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_counts_double_up_to_all() {
        assert_eq!(counts(1), [1]);
        assert_eq!(counts(2), [1, 2]);
        assert_eq!(counts(3), [1, 2, 3]);
        assert_eq!(counts(8), [1, 2, 4, 8]);
    }

    #[test]
    fn sizes_are_sorted_and_checked() {
        assert_eq!(sizes("16, 4,8,4", 2).unwrap(), [4, 8, 16]);
        assert_eq!(sizes("3", 1).unwrap(), [3]);
        assert_eq!(
            sizes("4,3", 2).unwrap_err().to_string(),
            "--batches 4,3: 3 images cannot be divided between two devices"
        );
        for wrong in ["", "4,", "0", "-4", "four", "2000000"] {
            let message = sizes(wrong, 1).unwrap_err().to_string();
            assert!(message.contains("is not a number of images"), "{message}");
        }
    }
}

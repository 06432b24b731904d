//! The tables of `yolo bench --scaling` and `--batches`: the results of their runs, and what follows
//! from them. The JSON and the CSV are part of the program's interface: a field is never removed and
//! never changes its meaning without a new [`VERSION`].

mod csv;
mod row;
mod spread;

pub use csv::to_csv;
pub use row::{Epochs, Outcome, Row};
pub use spread::Spread;

use serde::Serialize;

use crate::bench_report::{Source, device_name, model_name};
use crate::run::{BenchPart, BenchTask, PlannedRow, Table, Task};

/// Version of the tables.
pub const VERSION: u32 = 1;

/// Everything that was measured, and on what.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tables {
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// The version of `yolo`.
    pub program: String,
    /// The name of the model, or of the weights file that describes it.
    pub model: String,
    /// Side of the square network input in pixels.
    pub image_size: usize,
    /// The number format of the network in training: `fp32`, `fp16` or `bf16`.
    pub precision: &'static str,
    /// Where the batches of training steps come from.
    pub source: Source,
    /// Repetitions of which the median counts.
    pub rounds: usize,
    /// Whether the user ended the command before all rows were measured.
    pub interrupted: bool,
    /// One row per number of devices; empty if it was not asked for.
    pub scaling: Vec<Row>,
    /// One row per number of devices and batch size; empty if it was not asked for.
    pub batches: Vec<Row>,
}

impl Tables {
    /// Tables without rows for a run of theirs; `None` if the run is not that of a benchmark.
    pub fn new(first: &PlannedRow) -> Option<Self> {
        let Task::Bench(task) = &first.plan.task else { return None };
        let synthetic = task.measures(BenchPart::Synthetic);
        Some(Self {
            version: VERSION,
            program: first.plan.program.clone(),
            model: model_name(task),
            image_size: task.training.image_size,
            precision: task.training.precision.name(),
            source: if synthetic { Source::Synthetic } else { Source::Files },
            rounds: task.rounds,
            interrupted: false,
            scaling: Vec::new(),
            batches: Vec::new(),
        })
    }

    /// Adds the outcome of a run to its table, and compares it with that of one device.
    pub fn add(&mut self, planned: &PlannedRow, outcome: Outcome) {
        let Task::Bench(task) = &planned.plan.task else { return };
        let mut row = row_of(planned, task, outcome);
        let rows = match planned.table {
            Table::Scaling => &mut self.scaling,
            Table::Batches => &mut self.batches,
        };
        let one = match planned.table {
            Table::Scaling => rows.iter().find(|one| one.devices.len() == 1),
            Table::Batches => rows.iter().find(|one| one.devices.len() == 1 && one.batch == row.batch),
        };
        match one {
            Some(one) => row.compare_with(one),
            // Every comparison begins with one device, also that with itself.
            None if row.devices.len() == 1 => row.compare_with(&row.clone()),
            None => {}
        }
        rows.push(row);
    }

    /// The rows of one table.
    pub fn rows(&self, table: Table) -> &[Row] {
        match table {
            Table::Scaling => &self.scaling,
            Table::Batches => &self.batches,
        }
    }

    /// All rows.
    pub fn all_rows(&self) -> impl Iterator<Item = &Row> {
        self.scaling.iter().chain(&self.batches)
    }

    /// The tables as JSON.
    pub fn to_json(&self) -> String {
        // The types have string keys only, so this cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

fn row_of(planned: &PlannedRow, task: &BenchTask, outcome: Outcome) -> Row {
    let ranks = &planned.plan.ranks;
    Row {
        devices: ranks.devices.iter().map(device_name).collect(),
        batch: task.training.batch,
        batch_per_device: ranks.share(task.training.batch),
        threads_per_device: ranks.threads,
        workers_per_device: task.training.workers,
        outcome,
    }
}

//! The tables as CSV: one line per run. Numbers that do not exist are empty.

use yolo_base::format::csv_field;

use super::{Outcome, Row, Tables};
use crate::run::Table;

const COLUMNS: &str = "table,devices,device_names,batch,batch_per_device,threads_per_device,workers_per_device,\
                       status,images_per_second,images_per_second_min,images_per_second_max,\
                       seconds_per_epoch,validation_images_per_second,validation_seconds_per_epoch,\
                       memory_bytes,speed_up,efficiency,message";

/// The tables with a line of column names.
pub fn to_csv(tables: &Tables) -> String {
    let mut text = format!("{COLUMNS}\n");
    for (name, table) in [("scaling", Table::Scaling), ("batches", Table::Batches)] {
        for row in tables.rows(table) {
            text.push_str(&line(name, row));
            text.push('\n');
        }
    }
    text
}

fn line(table: &str, row: &Row) -> String {
    let epochs = row.outcome.epochs();
    let (status, message) = match &row.outcome {
        Outcome::Measured(_) => ("measured", ""),
        Outcome::OutOfMemory { message } => ("out-of-memory", message.as_str()),
        Outcome::Failed { message } => ("failed", message.as_str()),
        Outcome::NotMeasured { message } => ("not-measured", message.as_str()),
    };
    let rate = epochs.map(|epochs| epochs.images_per_second);
    let validation = epochs.and_then(|epochs| epochs.validation_images_per_second);
    let number = |value: Option<f64>, digits: usize| value.map_or(String::new(), |v| format!("{v:.digits$}"));
    [
        table.to_owned(),
        row.devices.len().to_string(),
        // Spaces, so that a reader without quotes reads it too.
        row.devices.join(" "),
        row.batch.to_string(),
        row.batch_per_device.to_string(),
        row.threads_per_device.to_string(),
        row.workers_per_device.to_string(),
        status.to_owned(),
        number(rate.map(|rate| rate.median), 3),
        number(rate.map(|rate| rate.min), 3),
        number(rate.map(|rate| rate.max), 3),
        number(epochs.map(|epochs| epochs.seconds), 3),
        number(validation.map(|rate| rate.median), 3),
        number(epochs.and_then(|epochs| epochs.validation_seconds), 3),
        epochs.map_or(String::new(), |epochs| epochs.memory.to_string()),
        number(epochs.and_then(|epochs| epochs.speed_up), 4),
        number(epochs.and_then(|epochs| epochs.efficiency), 4),
        csv_field(message),
    ]
    .join(",")
}

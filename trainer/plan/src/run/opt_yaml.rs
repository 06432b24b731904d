//! The content of `opt.yaml`: the settings of a training run under the names that YOLOv5 gives them.
//! They are derived from the task, so that a new field of the task needs no change here.

use serde_json::{Map, Value, json};

use super::{RunPlan, TrainTask};
use crate::device;
use crate::error::PlanError;

/// The settings in the order of the task's fields.
///
/// # Errors
/// When a path is not valid UTF-8.
pub fn opt_yaml(plan: &RunPlan, task: &TrainTask) -> Result<Map<String, Value>, PlanError> {
    let fields = serde_json::to_value(task)
        .map_err(|error| PlanError::new(format!("cannot write the settings of the run: {error}")))?;
    let fields = fields.as_object().cloned().unwrap_or_default();
    let mut settings: Map<String, Value> =
        fields.into_iter().map(|(field, value)| setting(task, field, value)).collect();
    settings.insert("device".to_owned(), json!(device::argument(&plan.ranks.all_devices())));
    settings.insert("nproc_per_node".to_owned(), json!(plan.ranks.devices.len()));
    settings.insert("backend".to_owned(), json!(plan.ranks.backend));
    settings.insert("nccl".to_owned(), json!(plan.ranks.nccl));
    settings.insert("save_dir".to_owned(), json!(plan.run_dir));
    Ok(settings)
}

/// A field of the task as YOLOv5 writes it: only names and values that differ are listed.
fn setting(task: &TrainTask, field: String, value: Value) -> (String, Value) {
    let (name, value) = match field.as_str() {
        "model" => ("cfg", json!(task.model.as_ref().map_or("", |model| &model.name))),
        "weights" if value.is_null() => ("weights", json!("")),
        "data" => ("data", json!(task.data.yaml)),
        "hyp" => ("hyp", json!("hyp.yaml")),
        "batch" => ("batch_size", value),
        "nominal_batch" => ("nbs", value),
        "image_size" => ("imgsz", value),
        "autoanchor" => ("noautoanchor", json!(!task.autoanchor)),
        "plots" => ("noplots", json!(!task.plots)),
        "patience" if value.is_null() => ("patience", json!(0)),
        "save_period" if value.is_null() => ("save_period", json!(-1)),
        _ => return (field, value),
    };
    (name.to_owned(), value)
}

//! `hyp.yaml` and `opt.yaml`: the settings of a run under YOLOv5's names, for people and for
//! scripts that compare runs. The run itself reads its plan.

use std::path::Path;

use fs_err as fs;
use serde_json::{Value, json};
use yolo_plan::RunPlan;
use yolo_plan::device::Device;
use yolo_plan::run::TrainTask;

use crate::error::TrainError;

/// Writes both files into the run folder.
///
/// # Errors
/// When they cannot be written.
pub fn write_settings(plan: &RunPlan, task: &TrainTask) -> Result<(), TrainError> {
    let hyp = serde_json::to_value(&task.hyp)
        .map_err(|error| TrainError::new(format!("cannot write the hyper-parameters: {error}")))?;
    write(&plan.run_dir.join("hyp.yaml"), &hyp)?;
    write(&plan.run_dir.join("opt.yaml"), &options(plan, task))
}

/// One line per key. Every JSON value is a YAML value too.
fn write(path: &Path, table: &Value) -> Result<(), TrainError> {
    let lines = table.as_object().into_iter().flatten();
    let text: String = lines.map(|(key, value)| format!("{key}: {value}\n")).collect();
    fs::write(path, text).map_err(|error| {
        TrainError::new(format!("cannot write the settings of the run: {error}"))
            .with_hint("choose a writable folder with `--project`")
    })
}

fn options(plan: &RunPlan, task: &TrainTask) -> Value {
    let devices: Vec<String> = plan
        .ranks
        .devices
        .iter()
        .map(|device| match device {
            Device::Cpu => "cpu".to_owned(),
            Device::Cuda(index) => index.to_string(),
        })
        .collect();
    json!({
        "weights": task.weights.as_deref().map_or(String::new(), |path| path.display().to_string()),
        "cfg": task.model.as_ref().map_or("", |model| &model.name),
        "data": task.data.yaml.display().to_string(),
        "hyp": "hyp.yaml",
        "epochs": task.epochs,
        "batch_size": task.batch,
        "nbs": task.nominal_batch,
        "imgsz": task.image_size,
        "rect": task.rect,
        "resume": task.resume.as_deref().map(|path| path.display().to_string()),
        "nosave": task.nosave,
        "noval": task.noval,
        "noautoanchor": !task.autoanchor,
        "noplots": !task.plots,
        "cache": task.cache,
        "device": devices.join(","),
        "nproc_per_node": plan.ranks.devices.len(),
        "single_cls": task.single_cls,
        "optimizer": task.optimizer,
        "sync_bn": task.sync_bn,
        "workers": task.workers,
        "cos_lr": task.cos_lr,
        "label_smoothing": task.label_smoothing,
        "patience": task.patience.unwrap_or(0),
        "freeze": task.freeze,
        "save_period": task.save_period.map_or(-1, |epochs| epochs as i64),
        "seed": task.seed,
        "save_dir": plan.run_dir.display().to_string(),
    })
}

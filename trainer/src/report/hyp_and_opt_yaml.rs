//! `hyp.yaml` and `opt.yaml`: the settings of a run under the names that YOLOv5 gives them, for
//! people and for scripts that compare runs. The run itself reads them from its plan.

use std::path::Path;

use fs_err as fs;
use serde_json::{Map, Value};
use yolo_plan::RunPlan;
use yolo_plan::run::{TrainTask, opt_yaml};

use crate::error::TrainError;

/// Writes both files into the run folder.
///
/// # Errors
/// When the folder cannot be written.
pub fn write_hyp_and_opt(plan: &RunPlan, task: &TrainTask) -> Result<(), TrainError> {
    let hyp = serde_json::to_value(&task.hyp)
        .map_err(|error| TrainError::new(format!("cannot write the hyperparameters: {error}")))?;
    write(&plan.run_dir.join("hyp.yaml"), hyp.as_object().unwrap_or(&Map::new()))?;
    write(&plan.run_dir.join("opt.yaml"), &opt_yaml(plan, task)?)
}

/// One line per key. Every JSON value is a YAML value.
fn write(path: &Path, table: &Map<String, Value>) -> Result<(), TrainError> {
    let text: String = table.iter().map(|(key, value)| format!("{key}: {value}\n")).collect();
    fs::write(path, text).map_err(|error| {
        TrainError::new(format!("cannot write the settings of the run: {error}"))
            .with_hint("name a writable folder with `--project`")
    })
}

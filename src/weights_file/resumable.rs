//! Whether a run can be resumed from a weights file. What `yolo weights` says and what `--resume` does follow this one rule.

use std::path::Path;

use torch_checkpoint::{Value, WeightsFile};
use yolo_plan::PlanError;
use yolo_plan::run::WrittenBy;

/// Fails unless the run of a checkpoint can be resumed from it.
///
/// # Errors
/// When its run is finished, or it lacks what a run needs.
pub(crate) fn check_resumable(path: &Path, file: &WeightsFile) -> Result<(), PlanError> {
    let written = match file.holds_module("model") {
        true => WrittenBy::Yolov5 { epoch: file.root.get("epoch").and_then(Value::as_i64) },
        false => WrittenBy::Yolo { finished: file.root.get("finished") == Some(&Value::Bool(true)) },
    };
    let has = |field: &str| file.root.get(field).is_some_and(|value| *value != Value::None);
    yolo_plan::run::check_resumable(path, written, has)
}

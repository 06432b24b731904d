//! Reads `opt.yaml`, in which a run keeps its settings, of `yolo` or of YOLOv5.

use std::path::Path;

use serde_json::{Map, Value};

use crate::error::PlanError;
use crate::yaml;

/// The settings in an `opt.yaml`, of `yolo` or of YOLOv5.
///
/// # Errors
/// When the file cannot be read, or is not a mapping.
pub fn read_opt_yaml(path: &Path) -> Result<Map<String, Value>, PlanError> {
    match yaml::read(path, "options")? {
        Value::Object(settings) => Ok(settings),
        _ => Err(PlanError::new(format!("{} is not a mapping of options", path.display()))),
    }
}

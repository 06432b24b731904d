//! What a run has left in its folder. Runs of YOLOv5 lack `report.json`, and validations have no `results.csv`;
//! what is not there is left out of the report.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use yolo_plan::report::RunReport;
use yolo_plan::results::{self, RESULTS_FILE, Row};
use yolo_plan::run::{PLAN_FILE, Task, ValTask};
use yolo_plan::{PlanError, RunPlan, yaml};

use crate::settings::{Setting, of_hyp, of_training, of_validation};

/// The files of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFiles {
    /// The run folder.
    pub folder: PathBuf,
    /// What `opt.yaml` says; of a validation, its plan.
    pub options: Vec<Setting>,
    /// What `hyp.yaml` says.
    pub hyp: Vec<Setting>,
    /// The epochs.
    pub results: Vec<Row>,
    /// What only the run itself knew.
    pub report: Option<RunReport>,
}

impl RunFiles {
    /// Reads the files of a run folder.
    ///
    /// # Errors
    /// When the folder is not that of a run, or one of the files is damaged.
    pub fn read(folder: &Path) -> Result<Self, PlanError> {
        let shown = folder.display();
        if !folder.is_dir() {
            let why = if folder.exists() { "is a file, not a run folder" } else { "does not exist" };
            return Err(PlanError::new(format!("{shown} {why}"))
                .with_hint("name the folder of a run, such as runs/train/exp"));
        }
        let report = RunReport::read(folder).map_err(|error| {
            PlanError::new(format!("cannot read the report.json of {shown}: {error}"))
                .with_hint("use the version of yolo that wrote it, or remove report.json from the folder")
        })?;
        let csv = folder.join(RESULTS_FILE);
        let has_results = csv.is_file();
        if report.is_none() && !has_results {
            return Err(PlanError::new(format!(
                "{shown} is no folder of a training run: it has no {RESULTS_FILE}"
            ))
            .with_hint("name the folder of a run, such as runs/train/exp"));
        }
        let yaml_of = |name: &str| {
            let path = folder.join(name);
            let value = if path.is_file() { yaml::read(&path, "file")? } else { Value::Null };
            Ok::<_, PlanError>(value.as_object().cloned().unwrap_or_default())
        };
        let (mut options, mut hyp) = (yaml_of("opt.yaml")?, yaml_of("hyp.yaml")?);
        // YOLOv5 writes the hyperparameters into opt.yaml too.
        if let Some(Value::Object(inner)) = options.shift_remove("hyp")
            && hyp.is_empty()
        {
            hyp = inner;
        }
        let options = match options.is_empty() {
            true => of_plan(folder).map_or_else(Vec::new, |options| of_validation(&options)),
            false => of_training(&options),
        };
        Ok(Self {
            folder: folder.to_owned(),
            options,
            hyp: of_hyp(&hyp),
            results: if has_results { results::read(&csv)? } else { Vec::new() },
            report,
        })
    }

    /// The name of the run: its folder, as `train/exp3`.
    pub fn name(&self) -> String {
        let parts: Vec<_> = self.folder.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        parts[parts.len().saturating_sub(2)..].join("/")
    }

    /// The value of a setting.
    pub fn option(&self, name: &str) -> Option<&str> {
        let found = self.options.iter().find(|setting| setting.name == name);
        found.map(|setting| setting.value.as_str()).filter(|value| !value.is_empty())
    }
}

/// The settings of a validation, under the names of its options; its plan has all.
fn of_plan(folder: &Path) -> Option<Map<String, Value>> {
    let Task::Val(task) = RunPlan::read(&folder.join(PLAN_FILE)).ok()?.task else { return None };
    let ValTask { data, image_size, batch, split, .. } = &*task;
    let Value::Object(mut fields) = serde_json::to_value(&task).ok()? else { return None };
    for (field, option, value) in [
        ("data", "data", json!(data.yaml)),
        ("image_size", "imgsz", json!(image_size)),
        ("batch", "batch_size", json!(batch)),
        ("split", "task", json!(split)),
    ] {
        fields.shift_remove(field);
        fields.insert(option.to_owned(), value);
    }
    fields.shift_remove("mode");
    Some(fields)
}

//! What a weights file says about the training that it is from. YOLOv5 keeps its options in the file (`opt`); `yolo` keeps them
//! in `opt.yaml` of the run's folder. At the end of a run, both remove the epochs from the file, and `results.csv` of that
//! folder has them. These two are read if the file is still in the folder.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value as Json};
use torch_checkpoint::{Value, WeightsFile};
use yolo_plan::results::{RESULTS_FILE, best, fitness, read as read_results};
use yolo_plan::run::read_opt_yaml;

use super::resumable::check_resumable;

/// The training of a file. What the file does not say is `null` or empty.
#[derive(Debug, Serialize)]
pub(crate) struct Training {
    /// The program that wrote the file.
    pub(crate) written_by: Option<String>,
    /// Epochs that were trained.
    pub(crate) epochs_done: Option<i64>,
    /// Epochs that were planned.
    pub(crate) epochs_planned: Option<i64>,
    /// Where the epochs of a finished run are from; `null` if the file itself says.
    pub(crate) epochs_from: Option<String>,
    /// Whether the run is finished, so that the file has only weights; `null` if the file does not say.
    pub(crate) finished: Option<bool>,
    /// Whether the run can be resumed from the file.
    pub(crate) can_resume: bool,
    /// The best fitness so far, 0.1 mAP50 + 0.9 mAP50-95; `null` if nothing was validated yet.
    pub(crate) best_fitness: Option<f64>,
    /// The epoch that had it, from 1.
    pub(crate) best_epoch: Option<i64>,
    /// When the file was written, as YOLOv5 writes it.
    pub(crate) date: Option<String>,
    /// The image size in pixels.
    pub(crate) image_size: Option<i64>,
    /// The options of the run.
    pub(crate) options: Map<String, Json>,
    /// Where the options are from; `null` if there are none.
    pub(crate) options_from: Option<String>,
    /// The hyperparameters.
    pub(crate) hyperparameters: Map<String, Json>,
}

pub(super) fn of_file(file: &WeightsFile, path: &Path) -> Training {
    let root = &file.root;
    let text = |key| root.get(key).and_then(Value::as_str).map(str::to_owned);
    let of_yolo = text("yolo_version");
    let is_yolov5 = ["model", "ema"].iter().any(|key| file.holds_module(key));
    let epoch = root.get("epoch").and_then(Value::as_i64);
    // As in YOLOv5, a file that has only weights has the epoch -1.
    let finished = match root.get("finished") {
        Some(Value::Bool(finished)) => Some(*finished),
        _ => epoch.map(|epoch| epoch < 0),
    };
    // 0 is in a file of which nothing was validated.
    let positive = |fitness: &f64| *fitness > 0.0;
    let mut best_fitness = root.get("best_fitness").and_then(Value::as_f64).filter(positive);
    let mut best_epoch =
        best_fitness.and(root.get("best_epoch")).and_then(Value::as_i64).map(|epoch| epoch + 1);
    let mut epochs_done = match epoch {
        Some(epoch) if epoch >= 0 => Some(epoch + 1),
        // It was interrupted in the first epoch.
        Some(_) if finished == Some(false) => Some(0),
        _ => None,
    };
    let results = (finished == Some(true)).then(|| of_run(path, RESULTS_FILE)).flatten();
    let results = results.and_then(|csv| read_results(&csv).ok()).unwrap_or_default();
    if let Some(last) = results.last() {
        epochs_done = Some(last[0] as i64 + 1);
        let top = best(&results).filter(|row| positive(&fitness(row)));
        best_fitness = best_fitness.or_else(|| top.map(fitness));
        best_epoch = best_epoch.or_else(|| top.map(|row| row[0] as i64 + 1));
    }
    let mut options = object(root.get("opt"));
    let mut options_from = (!options.is_empty()).then(|| "the file".to_owned());
    if let (true, Some((beside, name))) = (options.is_empty(), options_of_run(path)) {
        options = beside;
        options_from = Some(name);
    }
    Training {
        written_by: match of_yolo {
            Some(version) => Some(format!("yolo {version}")),
            None => is_yolov5.then(|| "YOLOv5".to_owned()),
        },
        epochs_done,
        epochs_planned: options.get("epochs").and_then(Json::as_i64),
        epochs_from: (!results.is_empty()).then(|| format!("{RESULTS_FILE} of the run")),
        finished,
        can_resume: check_resumable(path, file).is_ok(),
        best_fitness,
        best_epoch,
        date: text("date"),
        image_size: root.get("image_size").and_then(Value::as_i64).or_else(|| options.get("imgsz")?.as_i64()),
        hyperparameters: [root.get("hyp"), module(root).and_then(|module| module.get("hyp"))]
            .into_iter()
            .map(object)
            .find(|hyp| !hyp.is_empty())
            .unwrap_or_default(),
        options,
        options_from,
    }
}

fn module(root: &Value) -> Option<&Value> {
    ["ema", "model"].iter().filter_map(|key| root.get(key)).find(|value| **value != Value::None)
}

/// A file of the run in whose folder `weights` the file is.
fn of_run(path: &Path, name: &str) -> Option<PathBuf> {
    Some(path.canonicalize().ok()?.parent()?.parent()?.join(name))
}

/// `opt.yaml` of that run.
fn options_of_run(path: &Path) -> Option<(Map<String, Json>, String)> {
    Some((read_opt_yaml(&of_run(path, "opt.yaml")?).ok()?, "opt.yaml of the run".to_owned()))
}

/// A dict, or the attributes of an object such as Python's `Namespace`, without what JSON cannot express.
fn object(value: Option<&Value>) -> Map<String, Json> {
    let entries: Vec<(&str, &Value)> = match value {
        Some(Value::Dict(entries)) => {
            entries.iter().filter_map(|(key, value)| Some((key.as_str()?, value))).collect()
        }
        Some(Value::Object { fields, .. }) => {
            fields.iter().map(|(key, value)| (key.as_str(), value)).collect()
        }
        _ => Vec::new(),
    };
    entries.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value.to_json()?))).collect()
}

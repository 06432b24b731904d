//! What a weights file says about the training that it is from. YOLOv5 keeps its options in the file (`opt`); `yolo` keeps them
//! in `opt.yaml` of the run's folder, which is read if the file is still there.

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value as Json};
use torch_checkpoint::{Value, WeightsFile};
use yolo_plan::run::read_opt_yaml;

/// The training of a file. What the file does not say is `null` or empty.
#[derive(Debug, Serialize)]
pub(crate) struct Training {
    /// The program that wrote the file.
    pub(crate) written_by: Option<String>,
    /// Epochs that were trained, if the run is not finished.
    pub(crate) epochs_done: Option<i64>,
    /// Whether the run is finished, so that the file has only weights; `null` if the file does not say.
    pub(crate) finished: Option<bool>,
    /// The best fitness so far, 0.1 mAP50 + 0.9 mAP50-95.
    pub(crate) best_fitness: Option<f64>,
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
        epochs_done: epoch.filter(|epoch| *epoch >= 0).map(|epoch| epoch + 1),
        finished,
        best_fitness: root.get("best_fitness").and_then(Value::as_f64),
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

/// `opt.yaml` of the run in whose folder `weights` the file is.
fn options_of_run(path: &Path) -> Option<(Map<String, Json>, String)> {
    let file = path.canonicalize().ok()?.parent()?.parent()?.join("opt.yaml");
    Some((read_opt_yaml(&file).ok()?, "opt.yaml of the run".to_owned()))
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
